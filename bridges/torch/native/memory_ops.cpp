// The operators that every device of PyTorch has in C++: creating, viewing and resizing tensors.
#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>

#include "device_tensors.hpp"

namespace backplane_torch {

namespace {

using at::Tensor;
using OptionalType = std::optional<c10::ScalarType>;

c10::DeviceIndex index_in(std::optional<c10::Device> device) {
  return device && device->has_index() ? device->index() : current_device();
}

void check_options(const char* name, std::optional<c10::Layout> layout, std::optional<bool> pinned) {
  TORCH_CHECK_NOT_IMPLEMENTED(!layout || *layout == c10::Layout::Strided, name, ": found layout ",
                              layout.value_or(c10::Layout::Strided),
                              ", expected torch.strided: the device has no sparse tensors. Fix: create it on the CPU");
  TORCH_CHECK(!pinned || !*pinned, name, ": argument pin_memory: only tensors of the CPU can be pinned");
}

Tensor empty(c10::IntArrayRef size, OptionalType dtype, std::optional<c10::Layout> layout,
             std::optional<c10::Device> device, std::optional<bool> pinned, std::optional<c10::MemoryFormat> format) {
  check_options("empty", layout, pinned);
  Tensor made = new_tensor(size, c10::dtype_or_default(dtype), index_in(device));
  if (format && *format != c10::MemoryFormat::Contiguous && *format != c10::MemoryFormat::Preserve)
    made.unsafeGetTensorImpl()->empty_tensor_restride(*format);
  return made;
}

Tensor empty_strided(c10::IntArrayRef size, c10::IntArrayRef stride, OptionalType dtype,
                     std::optional<c10::Layout> layout, std::optional<c10::Device> device, std::optional<bool> pinned) {
  check_options("empty_strided", layout, pinned);
  at::detail::check_size_nonnegative(size);
  TORCH_CHECK(size.size() == stride.size(), "empty_strided: found ", size.size(), " sizes and ", stride.size(),
              " strides, expected as many of each");
  const c10::ScalarType type = c10::dtype_or_default(dtype);
  const c10::DeviceIndex index = index_in(device);
  const size_t item = c10::elementSize(type);
  const auto count = static_cast<int64_t>(at::detail::computeStorageNbytes(size, stride, item) / item);
  Tensor made =
      count == c10::multiply_integers(size) ? new_tensor(size, type, index) : new_tensor({count}, type, index);
  if (made.sizes() != size || made.strides() != stride) made.unsafeGetTensorImpl()->set_sizes_and_strides(size, stride);
  return made;
}

Tensor as_strided(const Tensor& self, c10::IntArrayRef size, c10::IntArrayRef stride, std::optional<int64_t> offset) {
  return at::native::as_strided_tensorimpl(self, size, stride, offset);
}

void grow_storage(const Tensor& self) {
  if (self.numel() == 0) return;
  const size_t needed = at::detail::computeStorageNbytes(self.sizes(), self.strides(), self.element_size(),
                                                         static_cast<size_t>(self.storage_offset()));
  if (needed > self.storage().nbytes()) resize_storage(self.storage(), needed);
}

const Tensor& resize(const Tensor& self, c10::IntArrayRef size, std::optional<c10::MemoryFormat> format) {
  at::detail::check_size_nonnegative(size);
  if (self.sizes() != size) self.unsafeGetTensorImpl()->set_sizes_contiguous(size);
  if (format && *format != c10::MemoryFormat::Preserve) self.unsafeGetTensorImpl()->empty_tensor_restride(*format);
  grow_storage(self);
  return self;
}

Tensor& set_storage(Tensor& self, at::Storage source, int64_t offset, c10::IntArrayRef size, c10::IntArrayRef stride) {
  TORCH_CHECK(source.device() == self.device(), "set_: found a storage on ", source.device(), ", expected one on ",
              self.device());
  TORCH_CHECK(offset >= 0, "set_: argument storage_offset: found ", offset, ", expected 0 or more");
  c10::TensorImpl* impl = self.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(std::move(source));
  impl->set_storage_offset(offset);
  if (stride.data())
    impl->set_sizes_and_strides(size, stride);
  else
    impl->set_sizes_contiguous(size);
  grow_storage(self);
  return self;
}

Tensor& set_whole_storage(Tensor& self, at::Storage source) {
  const auto count = static_cast<int64_t>(source.nbytes() / self.element_size());
  return set_storage(self, std::move(source), 0, {count}, {});
}

Tensor& set_tensor(Tensor& self, const Tensor& source) {
  if (self.unsafeGetTensorImpl() == source.unsafeGetTensorImpl()) return self;
  return set_storage(self, source.storage(), source.storage_offset(), source.sizes(), source.strides());
}

Tensor& set_nothing(Tensor& self) {
  return set_tensor(self, new_tensor({0}, self.scalar_type(), self.device().index()));
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", &empty);
  m.impl("empty_strided", &empty_strided);
  m.impl("as_strided", &as_strided);
  m.impl("resize_", &resize);
  m.impl("set_.source_Storage", &set_whole_storage);
  m.impl("set_.source_Storage_storage_offset", &set_storage);
  m.impl("set_.source_Tensor", &set_tensor);
  m.impl("set_", &set_nothing);
  m.impl("view", &at::native::view);
  m.impl("_reshape_alias", &at::native::_reshape_alias);
  m.impl("unfold", &at::native::unfold);
  m.impl("view_as_real", &at::native::view_as_real);
  m.impl("view_as_complex", &at::native::view_as_complex);
}

}  // namespace backplane_torch
