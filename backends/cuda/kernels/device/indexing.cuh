// Where index tensors point.
#pragma once

#include "kernels/device/element.cuh"

namespace backplane::cuda {

// The offset in x of index position p, and the number of that place among all that indices can name; false, with what
// was found reported, where an index is out of range.
__device__ inline bool indexed_place(const Indexing& indexing, uint32_t p, int64_t& offset, uint64_t& number) {
  offset = 0, number = 0;
#pragma unroll 1
  for (int k = 0; k < indexing.n_indices; ++k) {
    const Indexing::Index& index = indexing.indices[k];
    int64_t at = 0;
    uint32_t i = p;
#pragma unroll 1
    for (int d = 0; d < indexing.positions.rank; ++d) {
      const uint32_t rest = divide(i, indexing.positions.sizes[d]);
      at += static_cast<int64_t>(i - rest * indexing.positions.sizes[d].size) * index.strides[d];
      i = rest;
    }
    const int64_t found = load_integer(index.data + at, index.dtype);
    if (found < -index.axis_size || found >= index.axis_size) {
      report(indexing.error, DataFault::kIndexOutOfRange, found, index.axis, index.axis_size);
      return false;
    }
    const int64_t along = found < 0 ? found + index.axis_size : found;
    offset += along * index.axis_stride;
    number = number * static_cast<uint64_t>(index.axis_size) + static_cast<uint64_t>(along);
  }
  return true;
}
__device__ inline bool indexed_offset(const Indexing& indexing, uint32_t p, int64_t& offset) {
  uint64_t number;
  return indexed_place(indexing, p, offset, number);
}

}  // namespace backplane::cuda
