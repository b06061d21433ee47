// What nvcc compiles, as the rest of the backend calls it: launches on a stream, and their errors.
//
// No header of Backplane is read here, so that nvcc needs to understand CUDA alone.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/elementwise_ops.h"

namespace backplane::cuda {

#define BACKPLANE_NAME(op, operands, formula) op,
enum class Function { BACKPLANE_CUDA_ELEMENTWISE(BACKPLANE_NAME) };
#undef BACKPLANE_NAME

inline constexpr int kMaxRank = 8;

// An elementwise loop over operands result, x, y, passed to the device by value. Strides in elements.
struct Loop {
  float* result;
  const float* x;
  const float* y;  // nullptr for a function of x alone
  int64_t count;
  int64_t sizes[kMaxRank];  // innermost first
  int64_t strides[3][kMaxRank];
  int rank;
};

cudaError_t launch_elementwise(Function function, const Loop& loop, cudaStream_t stream);
cudaError_t launch_fill(float* result, int64_t count, float value, cudaStream_t stream);

}  // namespace backplane::cuda
