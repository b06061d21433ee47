// Wide values on their way to a half float through float32: rounded to odd first, so that only the last step rounds.
//
// A value to odd keeps leading bits, and has the last of them set where any of the dropped ones was: it lies on the
// same side of every half float, and of every tie between two, as the value itself (Boldo and Melquiond, "Emulation of
// FMA and correctly rounded sums: proved algorithms using rounding to odd", IEEE Trans. Comput. 57, 2008).
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "backplane/plugin/dtype.hpp"

namespace backplane::cpu {

// With 14 bits of fraction: float16 needs 12, and with more a subnormal bfloat16's would not fit into float32.
inline double to_odd(double x) {
  constexpr uint64_t kDropped = (uint64_t{1} << 38) - 1;
  const auto bits = std::bit_cast<uint64_t>(x);
  return std::bit_cast<double>((bits | ((bits & kDropped) + kDropped)) & ~kDropped);
}

// An integer with 10 to 24 leading bits, which float32 holds; smaller ones as they are.
template <class T>
inline T odd_integer(T x) {
  const auto bits = static_cast<uint64_t>(x);
  const uint64_t size = x < T(0) ? uint64_t{0} - bits : bits;
  const uint64_t kept = size >> 24 == 0 ? 1 : size >> 38 == 0 ? 1 << 14 : size >> 52 == 0 ? 1 << 28 : uint64_t{1} << 40;
  return static_cast<T>((bits | ((bits & (kept - 1)) + (kept - 1))) & ~(kept - 1));
}

// The float32 from which a half float of type To is made. Integers that float32 rounds are beyond float16's range.
template <class To, class From>
inline float before_half(From x) {
  if constexpr (std::is_same_v<From, double>)
    return static_cast<float>(to_odd(x));
  else if constexpr (std::is_integral_v<From> && sizeof(From) >= 4 && std::is_same_v<To, plugin::bfloat16>)
    return static_cast<float>(odd_integer(x));
  else
    return static_cast<float>(x);
}

}  // namespace backplane::cpu
