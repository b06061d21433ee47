// Tensor handles: making them and their end, which never recurses.
#include "tensor/tensor_impl.hpp"

#include <new>

#include "core/device.hpp"
#include "core/dtype_rules.hpp"
#include "core/shape_rules.hpp"
#include "tensor/pool.hpp"
#include "transforms/level.hpp"
#include "transforms/tape.hpp"

namespace backplane::core {
namespace {

using TensorPool = Pool<sizeof(TensorImpl)>;

// A handle without strides and storage.
TensorImpl* new_dims(Device& device, bp_dtype dtype, int32_t ndim, const int64_t* sizes) {
  auto* t = new (TensorPool::take()) TensorImpl;
  if (ndim <= kInlineRank) {
    t->dl.shape = t->inline_dims;
    t->dl.strides = t->inline_dims + kInlineRank;
  } else {
    t->dl.shape = new int64_t[2 * static_cast<size_t>(ndim)];
    t->dl.strides = t->dl.shape + ndim;
  }
  int64_t count = 1;
  for (int32_t i = 0; i < ndim; ++i) {
    t->dl.shape[i] = sizes[i];
    count *= sizes[i];
  }
  t->dl.data = nullptr;
  t->dl.device.device_type = static_cast<DLDeviceType>(device.properties.dl_device_type);
  t->dl.device.device_id = device.ordinal;
  t->dl.ndim = ndim;
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
  t->nbytes = static_cast<uint64_t>(count) * kItemSize[dtype];
  return t;
}

void set_row_major(TensorImpl* t) {
  int64_t stride = 1;
  for (int32_t i = t->dl.ndim; i-- > 0;) {
    t->dl.strides[i] = stride;
    stride *= t->dl.shape[i] > 1 ? t->dl.shape[i] : 1;
  }
  t->flags |= BP_TENSOR_CONTIGUOUS;
}

void set_strides(TensorImpl* t, const int64_t* strides) {
  bool row_major = true;
  bool empty = false;
  int64_t expected = 1;
  for (int32_t i = t->dl.ndim; i-- > 0;) {
    const int64_t size = t->dl.shape[i];
    t->dl.strides[i] = strides[i];
    row_major = row_major && (size == 1 || strides[i] == expected);
    empty = empty || size == 0;
    expected *= size;
  }
  if (row_major || empty) t->flags |= BP_TENSOR_CONTIGUOUS;
}

// A tensor may own others (a view its base, a node its saved tensors), in chains of any length. The outermost
// destruction on this thread takes down all that follow, one after another.
thread_local constinit TensorImpl* doomed __attribute__((tls_model("initial-exec"))) = nullptr;
thread_local constinit bool destroying __attribute__((tls_model("initial-exec"))) = false;

void destroy_one(TensorImpl* t) noexcept {
  if (t->node) release(t->node);
  if (t->autograd) destroy(t->autograd);
  if (t->wrapper) destroy(t->wrapper);
  if (t->view)
    destroy(t->view);  // with the base, which holds the storage
  else if (t->storage)
    release(t->storage);
  if (t->dl.shape != t->inline_dims) delete[] t->dl.shape;
  t->~TensorImpl();
  TensorPool::give(t);
}

}  // namespace

void destroy(TensorImpl* t) noexcept {
  // A node takes its own chain down one after another (node.cpp): with nothing else owned, nothing recurses here.
  if (!t->autograd && !t->view && !t->wrapper) {
    destroy_one(t);
    return;
  }
  t->dl.data = doomed;  // the list's link: nobody reads the tensor any more
  doomed = t;
  if (destroying) return;
  destroying = true;
  while (doomed) {
    TensorImpl* next = doomed;
    doomed = static_cast<TensorImpl*>(next->dl.data);
    destroy_one(next);
  }
  destroying = false;
}

TensorImpl* new_tensor(Device& device, bp_dtype dtype, int32_t ndim, const int64_t* sizes) {
  TensorImpl* t = new_dims(device, dtype, ndim, sizes);
  set_row_major(t);
  try {
    t->storage = new_storage(device, t->nbytes);
  } catch (...) {
    destroy_one(t);
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

TensorImpl* new_handle(Device& device, bp_dtype dtype, int32_t ndim, const int64_t* sizes) {
  TensorImpl* t = new_dims(device, dtype, ndim, sizes);
  set_row_major(t);
  return t;
}

}  // namespace backplane::core

namespace backplane {
void retain(bp_tensor* tensor) noexcept { core::retain(core::impl(tensor)); }
void release(bp_tensor* tensor) noexcept { core::release(core::impl(tensor)); }
}  // namespace backplane
