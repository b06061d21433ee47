// What nvcc compiles, as the rest of the backend calls it: launches on a stream, and their errors.
//
// Of Backplane only the scalar functions are read here, so that nvcc needs to understand CUDA alone.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#ifdef __CUDACC__
#include "backplane/scalar.cuh"
#else
#include "backplane/scalar.hpp"
#endif

namespace backplane::cuda {

// Every op of the registry that takes one or two float32 to a float32.
#define BACKPLANE_NAME(op, function, number) op,
enum class Function {
  BP_SCALAR_UNARY_float32_float32(BACKPLANE_NAME) BP_SCALAR_BINARY_float32_float32(BACKPLANE_NAME)
};
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
