// Elementwise kernels of float32 over strided operands, and fill. Copies move bits, so NaN payloads survive.
#include "kernels/launch.hpp"

namespace backplane::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxBlocks = 65535;

template <Function kFunction>
struct Formula;
#define BACKPLANE_UNARY(op, function, number)                          \
  template <>                                                          \
  struct Formula<Function::op> {                                       \
    static constexpr int kOperands = 1;                                \
    __device__ static float of(float x, float) { return function(x); } \
  };
#define BACKPLANE_BINARY(op, function, number)                              \
  template <>                                                               \
  struct Formula<Function::op> {                                            \
    static constexpr int kOperands = 2;                                     \
    __device__ static float of(float x, float y) { return function(x, y); } \
  };
BP_SCALAR_UNARY_float32_float32(BACKPLANE_UNARY) BP_SCALAR_BINARY_float32_float32(BACKPLANE_BINARY)
#undef BACKPLANE_UNARY
#undef BACKPLANE_BINARY

    __device__ int64_t first_index() {
  return blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
}
__device__ int64_t index_step() { return gridDim.x * static_cast<int64_t>(blockDim.x); }

template <Function kFunction>
__global__ void elementwise(Loop loop) {
  for (int64_t i = first_index(); i < loop.count; i += index_step()) {
    int64_t rest = i, to = 0, a = 0, b = 0;
    for (int d = 0; d < loop.rank; ++d) {
      const int64_t at = rest % loop.sizes[d];
      rest /= loop.sizes[d];
      to += at * loop.strides[0][d];
      a += at * loop.strides[1][d];
      b += at * loop.strides[2][d];
    }
    const float y = Formula<kFunction>::kOperands == 1 ? 0 : loop.y[b];
    loop.result[to] = Formula<kFunction>::of(loop.x[a], y);
  }
}

__global__ void fill(float* result, int64_t count, float value) {
  for (int64_t i = first_index(); i < count; i += index_step()) result[i] = value;
}

unsigned blocks_for(int64_t count) {
  const int64_t blocks = (count + kThreads - 1) / kThreads;
  return static_cast<unsigned>(blocks < kMaxBlocks ? blocks : kMaxBlocks);
}

}  // namespace

cudaError_t launch_elementwise(Function function, const Loop& loop, cudaStream_t stream) {
  const unsigned blocks = blocks_for(loop.count);
  switch (function) {
#define BACKPLANE_LAUNCH(op, function_of_op, number)                  \
  case Function::op:                                                  \
    elementwise<Function::op><<<blocks, kThreads, 0, stream>>>(loop); \
    break;
    BP_SCALAR_UNARY_float32_float32(BACKPLANE_LAUNCH) BP_SCALAR_BINARY_float32_float32(BACKPLANE_LAUNCH)
#undef BACKPLANE_LAUNCH
  }
  return cudaGetLastError();
}

cudaError_t launch_fill(float* result, int64_t count, float value, cudaStream_t stream) {
  fill<<<blocks_for(count), kThreads, 0, stream>>>(result, count, value);
  return cudaGetLastError();
}

}  // namespace backplane::cuda
