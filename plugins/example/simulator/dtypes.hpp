// Numbers as elements, arithmetic that holds for all element types, and sets of dtypes.
//
// A half float is stored as such and computed in float: Compute<T>.
#pragma once

#include <complex>
#include <limits>
#include <type_traits>

#include "backplane/plugin.hpp"
#include "backplane/plugin/element.hpp"

namespace sim {

using backplane::plugin::Compute;
using backplane::plugin::convert;
using backplane::plugin::dispatch_dtype;
using backplane::plugin::dispatch_width;
using backplane::plugin::kIsComplex;
using backplane::plugin::kIsHalf;
using backplane::plugin::kItemSize;

inline constexpr bp_dtype_mask kFloats = BP_MASK_FLOATING;
inline constexpr bp_dtype_mask kInexact = kFloats | BP_MASK_COMPLEX;
inline constexpr bp_dtype_mask kReals = kFloats | BP_MASK_INTEGER;
inline constexpr bp_dtype_mask kNumbers = kReals | BP_MASK_COMPLEX;
inline constexpr bp_dtype_mask kBits = BP_MASK_INTEGER | BP_MASK_BOOL;
inline constexpr bp_dtype_mask kOrdered = kReals | BP_MASK_BOOL;
inline constexpr bp_dtype_mask kAll = BP_MASK_ANY;

// A number as an element.
template <class T>
T element_of(const bp_value& number) {
  if (number.tag == BP_TAG_COMPLEX) return convert<T>(std::complex<double>(number.u.c[0], number.u.c[1]));
  return number.tag == BP_TAG_FLOAT ? convert<T>(number.u.f) : convert<T>(backplane::plugin::as_int(number));
}

// Integers wrap around: computed unsigned, in 64 bits, whose low part is the answer in any width.
template <class T>
T wrapping_add(T x, T y) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(x) + static_cast<uint64_t>(y));
  else
    return static_cast<T>(x + y);
}
template <class T>
T wrapping_multiply(T x, T y) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y));
  else
    return static_cast<T>(x * y);
}

}  // namespace sim
