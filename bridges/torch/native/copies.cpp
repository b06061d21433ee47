// Copies: within a device, between devices, and between a device and PyTorch's CPU.
#include <ATen/native/Resize.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "device_tensors.hpp"

namespace backplane_torch {

namespace {

using at::Tensor;

bool same(bp_device a, bp_device b) { return a.backend == b.backend && a.ordinal == b.ordinal; }

// A row-major tensor of the CPU over or beside the elements of x, of Backplane on any device.
Tensor to_cpu(const backplane::Tensor& x) {
  const bp_tensor& t = *x.get();
  Tensor made = at::empty({t.dl.shape, static_cast<size_t>(t.dl.ndim)},
                          at::TensorOptions().dtype(scalar_type_of(t.dtype)).device(c10::kCPU));
  if (made.numel() > 0) backplane::to_host(x, made.data_ptr());
  return made;
}

backplane::Tensor from_cpu(const Tensor& x, bp_device device) {
  return backplane::from_host(x.data_ptr(), {x.sizes().data(), x.sizes().size()},
                              {x.strides().data(), x.strides().size()}, dtype_of(x.scalar_type()), device);
}

// The bits that postpone a conjugation or a negation are of PyTorch: below them lie the elements as they are.
Tensor plain(const Tensor& x) {
  Tensor found = x;
  if (found.is_conj()) {
    found = found.alias();
    found._set_conj(false);
  }
  if (found.is_neg()) {
    found = found.is_same(x) ? found.alias() : found;
    found._set_neg(false);
  }
  return found;
}

void copy_values(const Tensor& source, const Tensor& target) {
  const bool from_device = source.device().type() == kDevice, to_device = target.device().type() == kDevice;
  if (!to_device) {  // the values in the source's dtype; PyTorch's CPU casts and broadcasts
    const Tensor values = to_cpu(view_of(source));
    target.copy_(values);
    return;
  }
  const backplane::Tensor into = view_of(target);
  if (target.numel() == 0) return;
  if (!from_device) {
    TORCH_CHECK(source.is_cpu(), "copy_: found a tensor on ", source.device(), ", expected one on the CPU or on ",
                target.device());
    const bool narrower = c10::elementSize(source.scalar_type()) > c10::elementSize(target.scalar_type());
    write(from_cpu(narrower || source.is_complex() ? source.to(target.scalar_type()) : source, into.device()), into);
    return;
  }
  backplane::Tensor from = view_of(source);
  if (!same(from.device(), into.device())) from = backplane::to_device(from, into.device());
  write(from, into);
}

Tensor copy_from(const Tensor& self, const Tensor& target, bool) {
  TORCH_CHECK(self.layout() == c10::Layout::Strided && target.layout() == c10::Layout::Strided,
              "copy_: found tensors with layouts ", self.layout(), " and ", target.layout(),
              ", expected strided ones. Fix: call to_dense() on the CPU first");
  TORCH_CHECK(!self.is_quantized() && !target.is_quantized(),
              "copy_: found a quantized tensor. Fix: call dequantize() on the CPU first");
  const bool conjugate = self.is_conj() != target.is_conj() && (self.is_complex() && target.is_complex());
  const bool negate = self.is_neg() != target.is_neg();
  Tensor source = plain(self);
  if (self.is_complex() && !target.is_complex())
    TORCH_WARN_ONCE("Casting complex values to real discards the imaginary part");
  if (conjugate) source = source.conj_physical();
  if (negate) source = source.neg();
  const Tensor into = plain(target);
  guarded("copy_", [&] { copy_values(source, into); });
  return target;
}

Tensor copy_from_and_resize(const Tensor& self, const Tensor& target) {
  if (target.sizes() != self.sizes()) at::native::resize_output(target, self.sizes());
  return copy_from(self, target, false);
}

c10::Scalar local_scalar_dense(const Tensor& self) {
  return guarded("item", [&] { return to_cpu(view_of(self)).item(); });
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_copy_from", &copy_from);
  m.impl("_copy_from_and_resize", &copy_from_and_resize);
  m.impl("_local_scalar_dense", &local_scalar_dense);
}

// Both write to `target`, which their schemas do not say: a resolved copy of it would be lost.
TORCH_LIBRARY_IMPL(aten, Conjugate, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
  m.impl("_copy_from_and_resize", torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(aten, Negative, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
  m.impl("_copy_from_and_resize", torch::CppFunction::makeFallthrough());
}

}  // namespace backplane_torch
