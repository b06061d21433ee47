// Storages and tensors of the device over Backplane's.
#include "device_tensors.hpp"

#include <ATen/EmptyTensor.h>
#include <ATen/ops/empty.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>

#include <algorithm>
#include <atomic>

#include "backplane/op.hpp"
#include "backplane/storage_view.hpp"

namespace backplane_torch {

namespace {

// What a storage of PyTorch owns. `origin`: where its first byte lies in Backplane's storage. All are in one list:
// PyTorch makes tensors over a bare address where it writes files.
struct Memory {
  backplane::Tensor base;
  uint64_t origin;
  void* first;
  Memory *before = nullptr, *after = nullptr;
};

class MemoryList {
 public:
  void add(Memory* memory) noexcept {
    lock();
    memory->after = head_;
    if (head_) head_->before = memory;
    head_ = memory;
    unlock();
  }
  void remove(Memory* memory) noexcept {
    lock();
    (memory->before ? memory->before->after : head_) = memory->after;
    if (memory->after) memory->after->before = memory->before;
    unlock();
  }
  const Memory* find(const void* first) noexcept {
    lock();
    const Memory* found = head_;
    while (found && found->first != first) found = found->after;
    unlock();
    return found;
  }

 private:
  void lock() noexcept {
    while (locked_.test_and_set(std::memory_order_acquire)) {
    }
  }
  void unlock() noexcept { locked_.clear(std::memory_order_release); }

  std::atomic_flag locked_;
  Memory* head_ = nullptr;
};
MemoryList g_memories;

void delete_memory(void* memory) {
  g_memories.remove(static_cast<Memory*>(memory));
  delete static_cast<Memory*>(memory);
}

const Memory& memory_of(const at::Tensor& x) {
  TORCH_CHECK(x.has_storage(), "backplane.torch: found a tensor without a storage (layout ", x.layout(),
              "), expected a strided one. Fix: call to_dense() first");
  const c10::DataPtr& data = x.storage().data_ptr();
  if (data.get_deleter() == &delete_memory) return *static_cast<const Memory*>(data.get_context());
  const Memory* found = g_memories.find(data.get());
  TORCH_CHECK(found, "backplane.torch: found a tensor on ", x.device(), " whose memory was not allocated there");
  return *found;
}

bool is_whole_view(const bp_tensor& t, const Memory& memory, const at::Tensor& x, bp_dtype dtype) {
  const auto sizes = x.sizes(), strides = x.strides();
  if (t.dtype != dtype || t.dl.ndim != static_cast<int32_t>(sizes.size()) || x.storage_offset() != 0 ||
      t.dl.byte_offset != memory.origin)
    return false;
  for (size_t i = 0; i < sizes.size(); ++i)
    if (t.dl.shape[i] != sizes[i] || t.dl.strides[i] != strides[i]) return false;
  return true;
}

backplane::OpHandle op_named(const char* name) {
  const backplane::OpHandle op = backplane::find_op(name);
  TORCH_CHECK(op != BP_NO_OP, "backplane.torch: the registry has no op ", name);
  return op;
}

struct DeviceAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t size) override {
    return guarded("allocate", [&] {
      const int64_t bytes[] = {static_cast<int64_t>(size)};
      return data_of(backplane::empty(bytes, BP_UINT8, device_of(current_device())));
    });
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void*, const void*, size_t) const override {
    TORCH_CHECK_NOT_IMPLEMENTED(false, "backplane.torch: memory of a device has no address to copy from");
  }
};
DeviceAllocator g_allocator;

at::Tensor over(backplane::Tensor base) {
  const bp_tensor& t = *base.get();
  const c10::IntArrayRef sizes(t.dl.shape, t.dl.ndim);
  const auto bytes = static_cast<size_t>(t.nbytes);
  const caffe2::TypeMeta type = c10::scalarTypeToTypeMeta(scalar_type_of(t.dtype));
  auto storage = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes,
                                                       data_of(std::move(base)), &g_allocator, true);
  at::Tensor made = at::detail::make_tensor<c10::TensorImpl>(std::move(storage),
                                                             c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), type);
  if (sizes.size() != 1 || sizes[0] != 0) made.unsafeGetTensorImpl()->set_sizes_contiguous(sizes);
  return made;
}

}  // namespace

c10::Allocator* allocator() { return &g_allocator; }

c10::DataPtr data_of(backplane::Tensor base) {
  const bp_tensor& t = *base.get();
  void* first = t.dl.data ? static_cast<char*>(t.dl.data) + t.dl.byte_offset : nullptr;
  const c10::Device device(kDevice, index_of(base.device()));
  auto* memory = new Memory{std::move(base), t.dl.byte_offset, first};
  g_memories.add(memory);
  return {first, memory, &delete_memory, device};
}

backplane::Tensor view_of(const at::Tensor& x) {
  const Memory& memory = memory_of(x);
  const bp_dtype dtype = dtype_of(x.scalar_type());
  if (is_whole_view(*memory.base.get(), memory, x, dtype)) return memory.base;
  const uint64_t offset = memory.origin + static_cast<uint64_t>(x.storage_offset()) * x.element_size();
  return guarded("backplane.torch", [&] {
    return backplane::view_storage(memory.base, dtype, {x.sizes().data(), x.sizes().size()},
                                   {x.strides().data(), x.strides().size()}, offset);
  });
}

backplane::Tensor operand_of(const at::Tensor& x, bp_device device) {
  if (x.device().type() == kDevice) {
    const backplane::Tensor found = view_of(x);
    const bp_device own = found.device();
    TORCH_CHECK(own.backend == device.backend && own.ordinal == device.ordinal,
                "Expected all tensors to be on the same device, but found at least two devices, ", x.device(), " (",
                backplane::device_name(own), ") and ", backplane::device_name(device), "!");
    return found;
  }
  TORCH_CHECK(x.is_cpu() && x.dim() == 0,
              "Expected all tensors to be on the same device, but found at least two devices, ", x.device(), " and ",
              c10::Device(kDevice, index_of(device)), "!");
  return guarded("backplane.torch",
                 [&] { return backplane::from_host(x.data_ptr(), {}, {}, dtype_of(x.scalar_type()), device); });
}

backplane::Tensor copied(const backplane::Tensor& x) {
  static const backplane::OpHandle copy = op_named("bp::copy");
  return backplane::call(copy, {backplane::value(x)});
}

void write(const backplane::Tensor& source, const backplane::Tensor& target) {
  static const backplane::OpHandle copy = op_named("bp::copy"), cast = op_named("bp::cast"),
                                   broadcast = op_named("bp::broadcast_to");
  backplane::Tensor from = source;
  if (!std::equal(from.shape().begin(), from.shape().end(), target.shape().begin(), target.shape().end()))
    from = backplane::call(broadcast, {backplane::value(from), backplane::value(target.shape())});
  bp_value out = backplane::value(target);
  out.flags |= BP_VALUE_GIVEN;
  const bool same = from.dtype() == target.dtype();
  const bp_value args[] = {backplane::value(from), backplane::dtype_value(target.dtype())};
  if (bp_status status = backplane::call_packed(same ? copy : cast, args, same ? 1 : 2, &out, 1))
    backplane::throw_last_error(status);
}

at::Tensor tensor_from(backplane::Tensor result) {
  const bp_tensor& t = *result.get();
  if (t.flags & BP_TENSOR_WRAPPER)
    TORCH_CHECK(false,
                "backplane.torch: found a traced tensor of Backplane as a result. Fix: call the operator outside of "
                "bp.compile and transforms");
  return over(result.is_contiguous() ? std::move(result) : copied(result));
}

void resize_storage(const c10::Storage& storage, size_t bytes) {
  TORCH_CHECK(storage.resizable(), "Trying to resize storage that is not resizable");
  const auto& old = *static_cast<const Memory*>(storage.data_ptr().get_context());
  guarded("resize_", [&] {
    const int64_t one[] = {1}, sizes[] = {static_cast<int64_t>(bytes)};
    backplane::Tensor made = backplane::empty(sizes, BP_UINT8, old.base.device());
    const int64_t kept[] = {static_cast<int64_t>(std::min(bytes, storage.nbytes()))};
    if (kept[0] > 0)
      write(backplane::view_storage(old.base, BP_UINT8, kept, one, old.origin),
            backplane::view_storage(made, BP_UINT8, kept, one, 0));
    storage.unsafeGetStorageImpl()->set_data_ptr_noswap(data_of(std::move(made)));
    storage.unsafeGetStorageImpl()->set_nbytes(bytes);
  });
}

at::Tensor new_tensor(c10::IntArrayRef sizes, c10::ScalarType type, c10::DeviceIndex index) {
  at::detail::check_size_nonnegative(sizes);
  return guarded("empty", [&] {
    return over(backplane::empty({sizes.data(), sizes.size()}, dtype_of(type), device_of(index)));
  });
}

}  // namespace backplane_torch
