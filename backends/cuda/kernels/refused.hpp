// What an elementwise kernel refuses of its data; the same text for nvcc, which asks while it compiles.
#pragma once

#include "runtime/arguments.hpp"

namespace backplane::cuda {

#ifdef __CUDACC__
#define BP_CUDA_ANYWHERE __host__ __device__
#else
#define BP_CUDA_ANYWHERE
#endif

// For which y of an integer dtype an op refuses, named without its namespace, as the registry's ops do.
BP_CUDA_ANYWHERE constexpr DataFault refused_integer(const char* op) {
  constexpr struct {
    const char* op;
    DataFault fault;
  } kRefusing[] = {{"floor_divide", DataFault::kDivisorZero},
                   {"remainder", DataFault::kDivisorZero},
                   {"fmod", DataFault::kDivisorZero},
                   {"pow", DataFault::kNegativeExponent}};
  for (const auto& row : kRefusing) {
    const char *a = op, *b = row.op;
    while (*a != 0 && *a == *b) ++a, ++b;
    if (*a == *b) return row.fault;
  }
  return DataFault::kNone;
}

}  // namespace backplane::cuda
