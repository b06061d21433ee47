// Tensor handles: making them and their end, which never recurses.
#include "memory/tensors/tensor_impl.hpp"

#include <algorithm>
#include <new>
#include <vector>

#include "memory/allocate.hpp"
#include "memory/devices/device.hpp"
#include "memory/tensors/history.hpp"
#include "memory/tensors/new_tensor.hpp"
#include "record/dtype_rules.hpp"

namespace backplane::core {

namespace {

// The product may overflow before a size of 0. Otherwise it throws, and ends the handle, which has only dims so far.
[[gnu::cold, gnu::noinline]] int64_t bytes_of_overflowing(TensorImpl* t, bp_dtype dtype) {
  const std::vector<int64_t> sizes(t->dl.shape, t->dl.shape + t->dl.ndim);
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return 0;
  if (t->dl.ndim > kInlineRank) delete[] t->dl.shape;
  t->~TensorImpl();
  TensorPool::give(t);
  fail_size(sizes.data(), static_cast<int32_t>(sizes.size()), kItemSize[dtype]);
}

// All but shape and strides.
[[gnu::always_inline]] inline void set_head(TensorImpl* t, Device& device, bp_dtype dtype, int32_t ndim,
                                            int64_t bytes) {
  t->dl.ndim = ndim;
  t->dl.data = nullptr;
  t->dl.device.device_type = static_cast<DLDeviceType>(device.properties.dl_device_type);
  t->dl.device.device_id = device.ordinal;
  t->dl.dtype = kDLDtypes[dtype];
  t->dl.byte_offset = 0;
  t->struct_size = sizeof(bp_tensor);
  t->flags = 0;
  t->backend = device.backend->index;
  t->ordinal = device.ordinal;
  t->dtype = dtype;
  t->reserved0 = 0;
  t->reserved1 = 0;
  t->storage = nullptr;
  t->nbytes = static_cast<uint64_t>(bytes);
}

// A handle without strides and storage.
TensorImpl* new_dims(Device& device, bp_dtype dtype, int32_t ndim, const int64_t* sizes) {
  auto* t = new (TensorPool::take()) TensorImpl;
  point_to_dims(t, ndim);
  t->dl.ndim = ndim;
  int64_t bytes = kItemSize[dtype];
  bool overflow = false;
  for (int32_t i = 0; i < ndim; ++i) {
    t->dl.shape[i] = sizes[i];
    overflow |= __builtin_mul_overflow(bytes, sizes[i], &bytes);
  }
  if (overflow) [[unlikely]]
    bytes = bytes_of_overflowing(t, dtype);
  set_head(t, device, dtype, ndim, bytes);
  return t;
}

// Strides are multiplied as unsigned numbers: strides of an empty tensor may exceed 64 bits, and are never used to read
// or write.
void set_row_major(TensorImpl* t) {
  uint64_t stride = 1;
  for (int32_t i = t->dl.ndim; i-- > 0;) {
    t->dl.strides[i] = static_cast<int64_t>(stride);
    stride *= static_cast<uint64_t>(t->dl.shape[i] > 1 ? t->dl.shape[i] : 1);
  }
  t->flags |= BP_TENSOR_CONTIGUOUS;
}

// A new_handle in one pass and without a call; nullptr where it takes more than a kept block: many dims, sizes whose
// product overflows or is 0.
[[gnu::always_inline]] inline TensorImpl* try_row_major(Device& device, bp_dtype dtype, int32_t ndim,
                                                        const int64_t* sizes) {
  void* block = ndim <= kInlineRank ? TensorPool::take_kept() : nullptr;
  if (!block) [[unlikely]]
    return nullptr;
  auto* t = new (block) TensorImpl;
  t->dl.shape = t->inline_dims;
  t->dl.strides = t->inline_dims + kInlineRank;
  int64_t count = 1, bytes;
  bool overflow = false;
  for (int32_t i = ndim; i-- > 0;) {
    t->inline_dims[i] = sizes[i];
    t->inline_dims[kInlineRank + i] = count;
    overflow |= __builtin_mul_overflow(count, sizes[i], &count);
  }
  overflow |= __builtin_mul_overflow(count, int64_t{kItemSize[dtype]}, &bytes);
  if (overflow || count == 0) [[unlikely]] {
    TensorPool::give(t);
    return nullptr;
  }
  set_head(t, device, dtype, ndim, bytes);
  t->flags = BP_TENSOR_CONTIGUOUS;
  return t;
}

void set_strides(TensorImpl* t, const int64_t* strides) {
  bool row_major = true;
  bool empty = false;
  uint64_t expected = 1;
  for (int32_t i = t->dl.ndim; i-- > 0;) {
    const int64_t size = t->dl.shape[i];
    t->dl.strides[i] = strides[i];
    row_major = row_major && (size == 1 || strides[i] == static_cast<int64_t>(expected));
    empty = empty || size == 0;
    expected *= static_cast<uint64_t>(size);
  }
  if (row_major || empty)
    t->flags |= BP_TENSOR_CONTIGUOUS;
  else if (repeats(*t))
    t->flags |= kRepeats;
}

// A tensor may own others (a view its base, a node its saved tensors), in chains of any length. The outermost
// destruction on this thread takes down all that follow, one after another.
thread_local constinit TensorImpl* doomed __attribute__((tls_model("initial-exec"))) = nullptr;
thread_local constinit bool destroying __attribute__((tls_model("initial-exec"))) = false;

void end_wrapper(Wrapper* wrapper) noexcept {
  release(wrapper->inner);
  if (wrapper->tangent) release(wrapper->tangent);
  WrapperPool::give(wrapper);
}

// A tensor without autograd and wrapper, and without the record of a view: its base, if it has one, holds the storage.
[[gnu::always_inline]] inline void destroy_plain(TensorImpl* t, const TensorImpl* base) noexcept {
  if (t->node) history_owner.release(t->node);
  if (!base && t->storage) release(t->storage);
  if (t->dl.shape != t->inline_dims) [[unlikely]]
    delete[] t->dl.shape;
  t->~TensorImpl();
  TensorPool::give(t);
}

[[gnu::noinline]] void destroy_in_turn(TensorImpl* t) noexcept {
  t->dl.data = doomed;  // the list's link: nobody reads the tensor any more
  doomed = t;
  if (destroying) return;
  destroying = true;
  while (doomed) {
    TensorImpl* next = doomed;
    doomed = static_cast<TensorImpl*>(next->dl.data);
    if (next->autograd) history_owner.end(next->autograd);
    if (next->wrapper) end_wrapper(next->wrapper);
    TensorImpl* base = next->view ? end_view_record(next->view) : nullptr;
    destroy_plain(next, base);
    if (base) release(base);
  }
  destroying = false;
}

}  // namespace

void destroy(TensorImpl* t) noexcept {
  // A node takes its own chain down one after another (node.cpp), and this loop goes from view to base.
  while (!t->autograd && !t->wrapper) [[likely]] {
      TensorImpl* base = t->view ? end_view_record(t->view) : nullptr;
      destroy_plain(t, base);
      if (!base || !drop(base)) return;
      t = base;
    }
  if (t->autograd && history_owner.taken_again(t)) return;
  destroy_in_turn(t);
}

TensorImpl* new_tensor(Device& device, bp_dtype dtype, int32_t ndim, const int64_t* sizes) {
  TensorImpl* t = try_row_major(device, dtype, ndim, sizes);
  if (!t) [[unlikely]]
    t = new_handle(device, dtype, ndim, sizes);
  try {
    t->storage = new_storage(device, t->nbytes);
  } catch (...) {
    destroy_plain(t, nullptr);
    throw;
  }
  t->dl.data = t->storage->data;
  return t;
}

TensorImpl* new_tensor_over(bp_storage* storage, bp_dtype dtype, int32_t ndim, const int64_t* sizes,
                            const int64_t* strides, uint64_t byte_offset) {
  TensorImpl* t = new_dims(*storage->device, dtype, ndim, sizes);
  if (strides) {
    set_strides(t, strides);
  } else {
    set_row_major(t);
  }
  t->storage = storage;
  t->dl.data = storage->data;
  t->dl.byte_offset = byte_offset;
  return t;
}

TensorImpl* new_alias(const TensorImpl& tensor) {
  retain(tensor.storage);
  TensorImpl* t = new_tensor_over(tensor.storage, tensor.dtype, tensor.dl.ndim, tensor.dl.shape, tensor.dl.strides,
                                  tensor.dl.byte_offset);
  t->flags |= tensor.flags & kRepeats;
  return t;
}

// Not inlined: new_tensor would save the registers that it needs.
[[gnu::noinline]] TensorImpl* new_handle(Device& device, bp_dtype dtype, int32_t ndim, const int64_t* sizes) {
  TensorImpl* t = new_dims(device, dtype, ndim, sizes);
  set_row_major(t);
  return t;
}

}  // namespace backplane::core

namespace backplane {
void retain(bp_tensor* tensor) noexcept { core::retain(core::impl(tensor)); }
void release(bp_tensor* tensor) noexcept { core::release(core::impl(tensor)); }
}  // namespace backplane
