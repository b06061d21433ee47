// What an elementwise kernel refuses of its data.
#pragma once

#include <string_view>

#include "backplane/abi/base.h"
#include "runtime/fault.hpp"

namespace backplane::vulkan {

// For which an integer y is refused by an op, named without its namespace, as the registry's ops do.
inline FaultKind refused(std::string_view op, bp_dtype dtype) {
  if (!(BP_MASK_INTEGER & BP_DTYPE_BIT(dtype))) return FaultKind::kNone;
  for (const char* divides : {"floor_divide", "remainder", "fmod"})
    if (op == divides) return FaultKind::kDivisorZero;
  return op == "pow" ? FaultKind::kNegativeExponent : FaultKind::kNone;
}

}  // namespace backplane::vulkan
