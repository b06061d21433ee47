// The families of kernels. Each function registers the rows of one file for the backend "cpu".
#pragma once

#include "backplane/plugin.hpp"

namespace backplane::cpu {

using plugin::Registrar;

void register_arithmetic(const Registrar& registrar);
void register_bitwise(const Registrar& registrar);
void register_compare(const Registrar& registrar);
void register_signs(const Registrar& registrar);
void register_functions(const Registrar& registrar);
void register_scatter(const Registrar& registrar);
void register_segments(const Registrar& registrar);
void register_running(const Registrar& registrar);
void register_topk(const Registrar& registrar);
void register_activations(const Registrar& registrar);
void register_activation_grads(const Registrar& registrar);
void register_trigonometry(const Registrar& registrar);
void register_hyperbolics(const Registrar& registrar);
void register_special(const Registrar& registrar);
void register_division(const Registrar& registrar);
void register_powers(const Registrar& registrar);
void register_float_bits(const Registrar& registrar);
void register_where(const Registrar& registrar);
void register_cast(const Registrar& registrar);
void register_fill(const Registrar& registrar);
void register_reduce(const Registrar& registrar);
void register_arg_reduce(const Registrar& registrar);
void register_scan(const Registrar& registrar);
void register_matmul(const Registrar& registrar);
void register_join(const Registrar& registrar);
void register_masked(const Registrar& registrar);
void register_index(const Registrar& registrar);
void register_along_axis(const Registrar& registrar);
void register_sort(const Registrar& registrar);
void register_random(const Registrar& registrar);
void register_softmax(const Registrar& registrar);
void register_conv2d(const Registrar& registrar);
void register_pool2d(const Registrar& registrar);
void register_overlap_add(const Registrar& registrar);
void register_attention(const Registrar& registrar);
void register_norm(const Registrar& registrar);
void register_batch_norm(const Registrar& registrar);
void register_batch_norm_grad(const Registrar& registrar);
void register_layer_norm_grad(const Registrar& registrar);
void register_variance(const Registrar& registrar);
void register_adjugate(const Registrar& registrar);
void register_factor(const Registrar& registrar);
void register_orthogonal(const Registrar& registrar);
void register_matrix_exp(const Registrar& registrar);
void register_eigen(const Registrar& registrar);
void register_fft(const Registrar& registrar);
void register_recurrent(const Registrar& registrar);

}  // namespace backplane::cpu
