// What an elementwise kernel refuses of its data; the same text for nvcc, which asks while it compiles.
#pragma once

#include "runtime/arguments.hpp"

namespace backplane::cuda {

#ifdef __CUDACC__
#define BP_CUDA_ANYWHERE __host__ __device__
#else
#define BP_CUDA_ANYWHERE
#endif

// BP_FAULT_DIVISION and BP_FAULT_EXPONENT: nvcc does not read the contract (elementwise.cpp compares them).
constexpr unsigned kFaultDivision = 4, kFaultExponent = 8;

// For which y of an integer dtype an op with these faults refuses.
BP_CUDA_ANYWHERE constexpr DataFault refused_integer(unsigned faults) {
  if (faults & kFaultDivision) return DataFault::kDivisorZero;
  return faults & kFaultExponent ? DataFault::kNegativeExponent : DataFault::kNone;
}

}  // namespace backplane::cuda
