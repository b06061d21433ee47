// Autocast on the device: which operators cast their floating arguments, and to which dtype. PyTorch's lists for CUDA.
#include <ATen/autocast_mode.h>
#include <torch/library.h>

#include <cstring>

#include "device_tensors.hpp"

namespace backplane_torch {

namespace {

using torch::jit::Stack;

enum class Policy { kLower, kFloat, kFloatResult, kPromote };

const char* const kLower[] = {"_convolution",
                              "addbmm",
                              "addmm",
                              "addmv",
                              "addr",
                              "baddbmm",
                              "bmm",
                              "chain_matmul",
                              "conv1d",
                              "conv1d.padding",
                              "conv2d",
                              "conv2d.padding",
                              "conv3d",
                              "conv3d.padding",
                              "conv_tbc",
                              "conv_transpose1d",
                              "conv_transpose2d.input",
                              "conv_transpose3d.input",
                              "convolution",
                              "einsum",
                              "gru_cell",
                              "linalg_multi_dot",
                              "linalg_vecdot",
                              "linear",
                              "lstm_cell",
                              "matmul",
                              "mm",
                              "mv",
                              "prelu",
                              "rnn_relu_cell",
                              "rnn_tanh_cell",
                              "scaled_dot_product_attention"};
const char* const kFloat[] = {"acos",
                              "asin",
                              "binary_cross_entropy_with_logits",
                              "cdist",
                              "cosh",
                              "cosine_embedding_loss",
                              "cosine_similarity",
                              "dist",
                              "erfinv",
                              "exp",
                              "expm1",
                              "group_norm",
                              "hinge_embedding_loss",
                              "huber_loss",
                              "kl_div",
                              "l1_loss",
                              "layer_norm",
                              "log",
                              "log10",
                              "log1p",
                              "log2",
                              "logsumexp",
                              "margin_ranking_loss",
                              "mse_loss",
                              "multi_margin_loss",
                              "multilabel_margin_loss",
                              "native_layer_norm",
                              "nll_loss",
                              "nll_loss2d",
                              "pdist",
                              "poisson_nll_loss",
                              "pow.Scalar",
                              "pow.Tensor_Scalar",
                              "pow.Tensor_Tensor",
                              "reciprocal",
                              "renorm",
                              "rms_norm",
                              "rsqrt",
                              "sinh",
                              "smooth_l1_loss",
                              "soft_margin_loss",
                              "softplus",
                              "tan",
                              "triplet_margin_loss",
                              "upsample_bicubic2d",
                              "upsample_bilinear2d",
                              "upsample_linear1d",
                              "upsample_nearest1d",
                              "upsample_nearest2d",
                              "upsample_nearest3d",
                              "upsample_trilinear3d"};
const char* const kFloatResult[] = {"cumprod",     "cumsum", "log_softmax.int", "prod", "prod.dim_int",
                                    "softmax.int", "sum",    "sum.dim_IntList"};
const char* const kPromote[] = {"addcdiv",      "addcmul",   "atan2",       "bilinear", "cat",       "cross", "dot",
                                "grid_sampler", "index_put", "scatter_add", "stack",    "tensordot", "vdot"};

bool is_eligible(const at::Tensor& x) {
  return x.defined() && x.device().type() == kDevice && x.is_floating_point() && x.scalar_type() != at::kDouble;
}

template <class Function>
void for_each_tensor(Stack& stack, size_t first, Function function) {
  for (size_t i = first; i < stack.size(); ++i) {
    c10::IValue& value = stack[i];
    if (value.isTensor()) {
      value = function(value.toTensor());
    } else if (value.isTensorList()) {
      std::vector<at::Tensor> list = value.toTensorVector();
      for (at::Tensor& x : list) x = function(x);
      value = list;
    }
  }
}

at::ScalarType widest_type(Stack& stack, size_t first, at::ScalarType lower) {
  at::ScalarType widest = lower;
  for_each_tensor(stack, first, [&](const at::Tensor& x) {
    if (is_eligible(x)) widest = c10::promoteTypes(widest, x.scalar_type());
    return x;
  });
  return widest;
}

class AutocastKernel final : public c10::OperatorKernel {
 public:
  explicit AutocastKernel(Policy policy) : policy_(policy) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
    c10::impl::ExcludeDispatchKeyGuard below(c10::DispatchKey::AutocastPrivateUse1);
    const size_t first = stack->size() - op.schema().arguments().size();
    if (policy_ == Policy::kFloatResult) {
      set_result_type(op, *stack, first);
    } else {
      const at::ScalarType lower = at::autocast::get_autocast_dtype(kDevice);
      const at::ScalarType type = policy_ == Policy::kLower   ? lower
                                  : policy_ == Policy::kFloat ? at::kFloat
                                                              : widest_type(*stack, first, lower);
      for_each_tensor(*stack, first, [&](const at::Tensor& x) {
        return is_eligible(x) ? at::autocast::cached_cast(type, x, kDevice) : x;
      });
    }
    op.callBoxed(stack);
  }

 private:
  static void set_result_type(const c10::OperatorHandle& op, Stack& stack, size_t first) {
    if (!stack[first].isTensor() || !is_eligible(stack[first].toTensor())) return;
    const auto& arguments = op.schema().arguments();
    for (size_t i = 0; i < arguments.size(); ++i)
      if (arguments[i].name() == "dtype" && stack[first + i].isNone()) stack[first + i] = at::kFloat;
  }

  Policy policy_;
};

template <size_t N>
void add(torch::Library& library, const char* const (&names)[N], Policy policy) {
  for (const char* name : names)
    library.impl(name, torch::CppFunction::makeFromBoxedFunctor(std::make_unique<AutocastKernel>(policy)));
}

}  // namespace

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
  add(m, kLower, Policy::kLower);
  add(m, kFloat, Policy::kFloat);
  add(m, kFloatResult, Policy::kFloatResult);
  add(m, kPromote, Policy::kPromote);
}

}  // namespace backplane_torch
