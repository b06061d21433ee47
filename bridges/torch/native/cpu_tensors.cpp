// Exchange of tensors on the CPU.
#include "cpu_tensors.hpp"

#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>

#include <memory>

#include "backplane/device.hpp"
#include "device_tensors.hpp"

namespace backplane_torch {

namespace {

struct Borrowed {
  at::Tensor owner;
  DLManagedTensorVersioned managed{};
};

void release_borrowed(DLManagedTensorVersioned* managed) { delete static_cast<Borrowed*>(managed->manager_ctx); }

void release_result(void* tensor) { backplane::release(static_cast<bp_tensor*>(tensor)); }

DLDataType dlpack_type(c10::ScalarType type) {
  const auto bits = static_cast<uint8_t>(c10::elementSize(type) * 8);
  if (type == c10::ScalarType::Bool) return {kDLBool, 8, 1};
  if (type == c10::ScalarType::BFloat16) return {kDLBfloat, bits, 1};
  if (c10::isComplexType(type)) return {kDLComplex, bits, 1};
  if (c10::isFloatingType(type)) return {kDLFloat, bits, 1};
  return {static_cast<uint8_t>(c10::isSignedType(type) ? kDLInt : kDLUInt), bits, 1};
}

}  // namespace

backplane::Tensor borrowed(const at::Tensor& x) {
  TORCH_CHECK(x.layout() == c10::kStrided && x.is_cpu(), "backplane.torch: found a tensor of layout ", x.layout(),
              " on ", x.device(), ", expected a strided tensor on the CPU");
  dtype_of(x.scalar_type());  // refuses dtypes that Backplane does not have
  auto made = std::make_unique<Borrowed>();
  made->owner = x;
  DLManagedTensorVersioned& managed = made->managed;
  managed.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  managed.manager_ctx = made.get();
  managed.deleter = release_borrowed;
  DLTensor& tensor = managed.dl_tensor;
  tensor.data = x.numel() ? const_cast<void*>(x.const_data_ptr()) : nullptr;
  tensor.device = {kDLCPU, 0};
  tensor.ndim = static_cast<int32_t>(x.dim());
  tensor.dtype = dlpack_type(x.scalar_type());
  tensor.shape = const_cast<int64_t*>(x.sizes().data());
  tensor.strides = const_cast<int64_t*>(x.strides().data());
  backplane::Tensor found = backplane::from_dlpack(&managed);
  made.release();  // NOLINT: the tensor owns it now
  return found;
}

at::Tensor cpu_tensor_over(backplane::Tensor result) {
  TORCH_CHECK(!(result.get()->flags & BP_TENSOR_WRAPPER),
              "backplane.torch: found a traced tensor of Backplane as a result. Fix: call the operator outside of "
              "bp.compile and transforms");
  if (!result.is_contiguous()) result = copied(result);
  const bp_tensor& t = *result.get();
  void* first = t.nbytes ? static_cast<char*>(t.dl.data) + t.dl.byte_offset : nullptr;
  const c10::IntArrayRef sizes(t.dl.shape, t.dl.ndim);
  const auto bytes = static_cast<size_t>(t.nbytes);
  const caffe2::TypeMeta type = c10::scalarTypeToTypeMeta(scalar_type_of(t.dtype));
  c10::DataPtr data(first, result.detach_handle(), &release_result, c10::Device(c10::DeviceType::CPU));
  auto storage = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes, std::move(data),
                                                       nullptr, false);
  at::Tensor made =
      at::detail::make_tensor<c10::TensorImpl>(std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU), type);
  if (sizes.size() != 1 || sizes[0] != 0) made.unsafeGetTensorImpl()->set_sizes_contiguous(sizes);
  return made;
}

}  // namespace backplane_torch
