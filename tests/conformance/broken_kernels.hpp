// Faults of the simulated accelerator's kernels; see broken_kernels.cpp.
#pragma once

#include <string>

#include "call.hpp"

struct KernelFault {
  const char* op;
  bp_kernel_fn fn;                   // nullptr: the right one
  bp_dtype_mask only = BP_MASK_ANY;  // whose row is the faulty one
  uint32_t more_flags = 0;
};
// nullptr if the fault is not in a kernel.
const KernelFault* kernel_fault(const std::string& name);
// The kernel of the fault's op as it should be, which faulty ones call.
extern bp_kernel_fn right_kernel;
