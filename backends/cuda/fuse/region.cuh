// What the kernels of fused regions are written in terms of (fuse/source.cpp): compiled by NVRTC, with what it
// includes.
#include "kernels/device/element.cuh"

namespace backplane::cuda {

// Half floats are computed in float32 and rounded after each op, as kernels round what they store.
__device__ inline float rounded_float16(float x) { return widen(narrow<float16>(x)); }
__device__ inline float rounded_bfloat16(float x) { return widen(narrow<bfloat16>(x)); }

// The bytes before element i of each operand that is reached by the axes.
template <int kRank, int kOperands>
__device__ void place(const Divider (&sizes)[kRank], const int64_t (&strides)[kOperands][kRank], uint32_t i,
                      int64_t (&at)[kOperands]) {
#pragma unroll
  for (int k = 0; k < kOperands; ++k) at[k] = 0;
#pragma unroll
  for (int d = 0; d < kRank; ++d) {
    const uint32_t rest = d + 1 < kRank ? divide(i, sizes[d]) : 0;
    const int64_t here = i - rest * sizes[d].size;
#pragma unroll
    for (int k = 0; k < kOperands; ++k) at[k] += here * strides[k][d];
    i = rest;
  }
}

template <class T>
__device__ T load(const char* at) {
  return *reinterpret_cast<const T*>(at);
}
template <class T>
__device__ void store(char* at, const T& value) {
  *reinterpret_cast<T*>(at) = value;
}

}  // namespace backplane::cuda
