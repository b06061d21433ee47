// Positions of a line's elements in order: a bitonic network (Batcher, "Sorting Networks and their Applications", 1968)
// over positions. Equal elements are compared by their positions, so that the order is the stable one.
#pragma once

#include "kernels/device/element.cuh"

namespace backplane::cuda {

// NaN is the largest. Positions from `length` on come last.
template <class T>
__device__ bool comes_before(const Sorting& call, const char* line, uint32_t i, uint32_t j) {
  if (i >= call.length || j >= call.length) return i < j;
  const Compute<T> a = widen(*reinterpret_cast<const T*>(line + i * call.x_step));
  const Compute<T> b = widen(*reinterpret_cast<const T*>(line + j * call.x_step));
  const bool less = a != a ? false : b != b ? true : a < b;
  const bool greater = b != b ? false : a != a ? true : b < a;
  if (less || greater) return call.descending ? greater : less;
  return i < j;
}

template <class T>
__device__ void compare(const Sorting& call, const char* line, uint32_t* order, uint32_t i, uint32_t step,
                        uint32_t run) {
  const uint32_t j = i ^ step;
  if (j <= i) return;
  const uint32_t a = order[i], b = order[j];
  const bool upward = (i & run) == 0;
  if (comes_before<T>(call, line, b, a) == upward) order[i] = b, order[j] = a;
}

// A block per line, of at most kSortedInBlock elements.
template <class T>
__device__ void sort_lines(const Sorting& call) {
  __shared__ uint32_t order[kSortedInBlock];
  for (uint32_t l = blockIdx.x; l < call.lines.count; l += gridDim.x) {
    const Offsets at = place(call.lines, l);
    for (uint32_t i = threadIdx.x; i < call.padded; i += blockDim.x) order[i] = i;
    for (uint32_t run = 2; run <= call.padded; run *= 2)
      for (uint32_t step = run / 2; step > 0; step /= 2) {
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < call.padded; i += blockDim.x)
          compare<T>(call, call.x + at.x, order, i, step, run);
      }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < call.length; i += blockDim.x)
      *reinterpret_cast<int64_t*>(call.out + at.out + i * call.out_step) = order[i];
    __syncthreads();
  }
}

}  // namespace backplane::cuda
