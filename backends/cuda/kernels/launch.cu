// Elementwise kernels of float32 over strided operands, and fill. Copies move bits, so NaN payloads survive.
#include "kernels/launch.hpp"

namespace backplane::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxBlocks = 65535;

template <Function kFunction>
struct Formula;
#define BACKPLANE_FORMULA(op, operands, formula)                                      \
  template <>                                                                         \
  struct Formula<Function::op> {                                                      \
    static constexpr int kOperands = operands;                                        \
    __device__ static float of(float x, [[maybe_unused]] float y) { return formula; } \
  };
BACKPLANE_CUDA_ELEMENTWISE(BACKPLANE_FORMULA)
#undef BACKPLANE_FORMULA

__device__ int64_t first_index() { return blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x; }
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
#define BACKPLANE_LAUNCH(op, operands, formula)                       \
  case Function::op:                                                  \
    elementwise<Function::op><<<blocks, kThreads, 0, stream>>>(loop); \
    break;
    BACKPLANE_CUDA_ELEMENTWISE(BACKPLANE_LAUNCH)
#undef BACKPLANE_LAUNCH
  }
  return cudaGetLastError();
}

cudaError_t launch_fill(float* result, int64_t count, float value, cudaStream_t stream) {
  fill<<<blocks_for(count), kThreads, 0, stream>>>(result, count, value);
  return cudaGetLastError();
}

}  // namespace backplane::cuda
