// Calls under vmap.
#include "batches.hpp"

#include <ATen/functorch/DynamicLayer.h>
#include <ATen/functorch/PlumbingHelper.h>

namespace backplane_torch {

namespace {

class BatchKernel final : public c10::OperatorKernel {
 public:
  BatchKernel(size_t n_args, CallTexts& texts) : n_args_(n_args), texts_(texts) {}

  void operator()(const c10::OperatorHandle& handle, c10::DispatchKeySet, torch::jit::Stack* stack) {
    const auto arguments = torch::jit::last(*stack, n_args_);
    const int64_t level = at::functorch::maybeCurrentDynamicLayer()->layerId();
    std::vector<at::Tensor> tensors;
    std::string axes;
    bool is_batched = false;
    each_tensor(arguments, [&](const at::Tensor& x) {
      auto [inner, axis] = at::functorch::unwrapTensorAtLevel(x, level);
      tensors.push_back(std::move(inner));
      axes += (axes.empty() ? "" : ", ") + (axis ? std::to_string(*axis) : std::string("null"));
      is_batched = is_batched || axis;
    });
    c10::impl::ExcludeDispatchKeyGuard below(c10::DispatchKey::FuncTorchBatched);
    if (!is_batched) return handle.callBoxed(stack);
    std::vector<at::Tensor> results =
        run_program("[\"vmap\", " + texts_.of(constants_of(arguments)) + ", [" + axes + "]]", tensors, false);
    for (at::Tensor& result : results) result = at::functorch::makeBatched(std::move(result), 0, level);
    torch::jit::drop(*stack, n_args_);
    if (handle.schema().returns()[0].type()->kind() == c10::TypeKind::ListType)
      stack->emplace_back(std::move(results));
    else
      for (at::Tensor& result : results) stack->emplace_back(std::move(result));
  }

 private:
  size_t n_args_;
  CallTexts& texts_;
};

}  // namespace

torch::CppFunction batch_kernel(size_t n_args, CallTexts& texts) {
  return torch::CppFunction::makeFromBoxedFunctor(std::make_unique<BatchKernel>(n_args, texts));
}

}  // namespace backplane_torch
