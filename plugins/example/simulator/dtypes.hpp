// Conversions between the element types that the simulator computes in, and types that stand for a dtype's width.
#pragma once

#include <limits>
#include <type_traits>

#include "backplane/plugin.hpp"

namespace sim {

using backplane::plugin::dispatch_dtype;
using backplane::plugin::kItemSize;

inline constexpr bp_dtype_mask kFloats = BP_DTYPE_BIT(BP_FLOAT32) | BP_DTYPE_BIT(BP_FLOAT64);
inline constexpr bp_dtype_mask kReals = kFloats | BP_MASK_INTEGER;
inline constexpr bp_dtype_mask kBits = BP_MASK_INTEGER | BP_MASK_BOOL;
inline constexpr bp_dtype_mask kAll = kReals | BP_MASK_BOOL;
inline constexpr bp_dtype_mask kLacking = BP_MASK_ANY & ~kAll;  // half precision and complex numbers

// Out-of-range values saturate and NaN becomes 0: C++ leaves both undefined.
template <class Out, class In>
Out convert(In x) {
  if constexpr (std::is_same_v<Out, bool>) {
    return x != In{0};
  } else {
    if constexpr (std::is_floating_point_v<In> && std::is_integral_v<Out>) {
      if (x != x) return Out{0};
      if (x <= static_cast<In>(std::numeric_limits<Out>::min())) return std::numeric_limits<Out>::min();
      if (x >= static_cast<In>(std::numeric_limits<Out>::max())) return std::numeric_limits<Out>::max();
    }
    return static_cast<Out>(x);
  }
}

// A bool, int or float value as an element.
template <class T>
T element_of(const bp_value& number) {
  return number.tag == BP_TAG_FLOAT ? convert<T>(number.u.f) : convert<T>(backplane::plugin::as_int(number));
}

// Integers wrap around: computed unsigned, in 64 bits, whose low part is the answer in any width.
template <class T>
T wrapping_add(T x, T y) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(x) + static_cast<uint64_t>(y));
  else
    return x + y;
}
template <class T>
T wrapping_multiply(T x, T y) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y));
  else
    return x * y;
}

// For data that are moved and not read: f.template operator()<T>() with a type of the dtype's width.
struct Wide {
  uint64_t half[2];
};
template <class F>
decltype(auto) dispatch_width(bp_dtype dtype, F&& f) {
  switch (kItemSize[dtype]) {
    case 1:
      return f.template operator()<uint8_t>();
    case 2:
      return f.template operator()<uint16_t>();
    case 4:
      return f.template operator()<uint32_t>();
    case 8:
      return f.template operator()<uint64_t>();
    default:
      return f.template operator()<Wide>();
  }
}

}  // namespace sim
