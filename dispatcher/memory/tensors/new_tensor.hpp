// Making handles, for the two files that do: the free list, where dims lie, and views, which every indexing makes.
#pragma once

#include <new>

#include "memory/process/pool.hpp"
#include "memory/tensors/tensor_impl.hpp"
#include "record/dtype_rules.hpp"
#include "record/shape_rules.hpp"

namespace backplane::core {

using TensorPool = Pool<sizeof(TensorImpl)>;

inline void point_to_dims(TensorImpl* t, int32_t ndim) {
  if (ndim <= kInlineRank) [[likely]] {
    t->dl.shape = t->inline_dims;
    t->dl.strides = t->inline_dims + kInlineRank;
  } else {
    t->dl.shape = new int64_t[2 * static_cast<size_t>(ndim)];
    t->dl.strides = t->dl.shape + ndim;
  }
}

// Has a tensor with elements an axis of several that lie in one place?
inline bool repeats(const bp_tensor& t) {
  for (int32_t i = 0; i < t.dl.ndim; ++i)
    if (t.dl.strides[i] == 0 && t.dl.shape[i] > 1) return true;
  return false;
}

// Of `base`, over its storage, at shape.byte_offset from it. The caller sees to what holds the storage: a reference, or
// the view's record of its base.
[[gnu::always_inline]] inline TensorImpl* new_view(const TensorImpl& base, const ShapeResult& shape) {
  auto* t = new (TensorPool::take()) TensorImpl;
  static_cast<bp_tensor&>(*t) = base;
  const int32_t ndim = shape.ndim;
  point_to_dims(t, ndim);
  bool row_major = true;
  uint64_t count = 1;  // which may overflow before a size of 0
  for (int32_t i = ndim; i-- > 0;) {
    const int64_t size = shape.sizes[i], stride = shape.strides[i];
    t->dl.shape[i] = size;
    t->dl.strides[i] = stride;
    row_major = row_major & ((size == 1) | (stride == static_cast<int64_t>(count)));
    count *= static_cast<uint64_t>(size);
  }
  t->dl.ndim = ndim;
  t->dl.byte_offset = static_cast<uint64_t>(static_cast<int64_t>(base.dl.byte_offset) + shape.byte_offset);
  t->flags = base.flags & kRepeats;
  if (row_major || count == 0)
    t->flags |= BP_TENSOR_CONTIGUOUS;
  else if (repeats(*t))
    t->flags |= kRepeats;
  if (shape.view_dtype != BP_DTYPE_NONE) {
    t->dtype = shape.view_dtype;
    t->dl.dtype = kDLDtypes[shape.view_dtype];
  }
  t->nbytes = count * kItemSize[t->dtype];
  return t;
}

}  // namespace backplane::core
