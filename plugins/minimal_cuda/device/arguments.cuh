// How a kernel finds its arguments (kernels/arguments.hpp). Every kernel NAME is a function NAME_item that
// does one item.
#pragma once

#include "kernels/arguments.hpp"

namespace minimal {

struct Offsets {
  int64_t of[kMaxOperands];
};

// Byte offsets of the operands at position i of the first loop (0) or the second one (1).
__device__ inline Offsets offsets_of(const Arguments& call, int64_t i, int loop) {
  Offsets at{};
  const uint32_t first = loop == 0 ? 0 : call.rank[0];
  for (uint32_t d = call.rank[loop]; d-- > 0;) {
    const int64_t* row = call.rows[first + d];
    const int64_t here = i % row[0];
    i /= row[0];
    for (int k = 0; k < kMaxOperands; ++k) at.of[k] += here * row[1 + k];
  }
  return at;
}

__device__ inline char* operand(const Arguments& call, int k, int64_t offset = 0) {
  return reinterpret_cast<char*>(call.at[k]) + offset;
}
// Integers of 64 bits, one behind the other, as an operand: positions, and offsets that they stand for.
__device__ inline int64_t* places(const Arguments& call, int k) { return reinterpret_cast<int64_t*>(call.at[k]); }

__device__ inline void report(const Arguments& call) { *reinterpret_cast<uint32_t*>(call.found) = 1; }

}  // namespace minimal

#define MINIMAL_KERNEL(name, number)                                                            \
  extern "C" __global__ void name(const __grid_constant__ minimal::Arguments call) {            \
    const int64_t step = int64_t{gridDim.x} * blockDim.x;                                       \
    for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < call.items; i += step) \
      minimal::name##_item(call, i);                                                            \
  }
