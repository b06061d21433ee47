// What an elementwise kernel refuses of its data.
#pragma once

#include "backplane/abi/op.h"
#include "runtime/fault.hpp"

namespace backplane::vulkan {

// For which y an op with these BP_FAULT_* refuses.
inline FaultKind refused(unsigned faults, bp_dtype dtype) {
  if (!(BP_MASK_INTEGER & BP_DTYPE_BIT(dtype))) return FaultKind::kNone;
  if (faults & BP_FAULT_DIVISION) return FaultKind::kDivisorZero;
  return faults & BP_FAULT_EXPONENT ? FaultKind::kNegativeExponent : FaultKind::kNone;
}

}  // namespace backplane::vulkan
