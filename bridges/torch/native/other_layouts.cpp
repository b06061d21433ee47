// Tensors that the device does not have: sparse, quantized and nested ones. Their operators are errors that say so.
#include <torch/library.h>

#include "device_tensors.hpp"

namespace backplane_torch {

namespace {

[[noreturn]] void refuse(const c10::OperatorHandle& op, const char* kind, const char* fix) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, c10::toString(op.operator_name()), ": found a ", kind,
                              " tensor; Backplane's devices have only strided tensors. Fix: call ", fix,
                              " on the CPU before you move the tensor to the device");
}

void refuse_sparse(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack*) {
  refuse(op, "sparse", "to_dense()");
}
void refuse_quantized(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack*) {
  refuse(op, "quantized", "dequantize()");
}
void refuse_nested(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack*) {
  refuse(op, "nested", "to_padded_tensor()");
}

}  // namespace

TORCH_LIBRARY_IMPL(_, SparsePrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&refuse_sparse>()); }
TORCH_LIBRARY_IMPL(_, SparseCsrPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&refuse_sparse>());
}
TORCH_LIBRARY_IMPL(_, QuantizedPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&refuse_quantized>());
}
TORCH_LIBRARY_IMPL(_, NestedTensorPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&refuse_nested>());
}

}  // namespace backplane_torch
