// float16 (IEEE 754 binary16) and bfloat16 as doubles: the values that Python can hold.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace backplane::python {

inline double bfloat_to_double(uint16_t bits) noexcept {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

inline double half_to_double(uint16_t bits) noexcept {
  const int exponent = (bits >> 10) & 0x1f;
  const int fraction = bits & 0x3ff;
  double magnitude;
  if (exponent == 0x1f) {
    magnitude = fraction ? std::nan("") : INFINITY;
  } else if (exponent == 0) {
    magnitude = std::ldexp(fraction, -24);  // subnormal: steps of 2^-24
  } else {
    magnitude = std::ldexp(fraction + 0x400, exponent - 25);
  }
  return bits & 0x8000 ? -magnitude : magnitude;
}

}  // namespace backplane::python
