// The CPU backend as a plugin: its device and the rows of all kernel families.
//
// Built on the public headers alone. Not unloadable: OpenBLAS, which it links, keeps threads of its own.
#include "backplane/plugin.hpp"

#include "kernels/families.hpp"
#include "runtime/device.hpp"

namespace backplane::cpu {
namespace {

void register_all(plugin::Registrar& registrar) {
  registrar.backend(backend_def(registrar.host()));
  for (const auto family : {
           register_arithmetic,
           register_bitwise,
           register_compare,
           register_signs,
           register_functions,
           register_trigonometry,
           register_hyperbolics,
           register_special,
           register_powers,
           register_float_bits,
           register_where,
           register_cast,
           register_fill,
           register_reduce,
           register_arg_reduce,
           register_scan,
           register_matmul,
           register_join,
           register_index,
           register_along_axis,
           register_sort,
           register_random,
           register_softmax,
           register_conv2d,
           register_pool2d,
           register_norm,
           register_activations,
           register_activation_grads,
           register_overlap_add,
           register_attention,
           register_factor,
           register_orthogonal,
           register_eigen,
           register_scatter,
           register_segments,
           register_running,
           register_topk,
           register_fft,
           register_division,
           register_batch_norm,
           register_batch_norm_grad,
           register_variance,
           register_recurrent,
           register_masked,
           register_layer_norm_grad,
           register_matrix_exp,
           register_adjugate,
       })
    family(registrar);
}

}  // namespace
}  // namespace backplane::cpu

BP_DEFINE_PLUGIN("backplane_cpu", "0.1.0", backplane::cpu::register_all, .stop = backplane::cpu::stop_device)
