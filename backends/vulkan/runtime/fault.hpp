// An error that a kernel has found in its data, as it stands in memory that the host and the device share.
//
// Shaders write the first one (shaders/fault.glsl); the host reads it once the work has ended.
#pragma once

#include <cstdint>
#include <string>

namespace backplane::vulkan {

enum class FaultKind : uint32_t { kNone, kDivisorZero, kNegativeExponent, kIndex };

struct Fault {
  uint32_t taken = 0;  // 1: what follows is written, or is being written
  FaultKind kind = FaultKind::kNone;
  uint64_t ticket = 0;
  int64_t found = 0;
  uint32_t axis = 0;
  uint32_t size = 0;  // of the axis
};
static_assert(sizeof(Fault) == 32);

inline std::string message_of(const Fault& fault) {
  switch (fault.kind) {
    case FaultKind::kDivisorZero:
      return "an integer divisor is 0; expected every divisor to differ from 0";
    case FaultKind::kNegativeExponent:
      return "an integer exponent is " + std::to_string(fault.found) + "; expected 0 or more, or a floating dtype";
    default: {
      const std::string size = std::to_string(fault.size);
      return "found index " + std::to_string(fault.found) + " along axis " + std::to_string(fault.axis) +
             ", expected one in [-" + size + ", " + size + ")";
    }
  }
}

}  // namespace backplane::vulkan
