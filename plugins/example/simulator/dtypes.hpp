// Conversions between the element types, arithmetic that holds for all of them, and types that stand for a dtype's
// width.
//
// A half float is stored as such and computed in float: Compute<T>.
#pragma once

#include <complex>
#include <limits>
#include <type_traits>

#include "backplane/plugin.hpp"
#include "backplane/scalar.hpp"

namespace sim {

using backplane::plugin::Compute;
using backplane::plugin::dispatch_dtype;
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

// Between real dtypes as the registry's cast says it. A complex number loses its imaginary part.
template <class Out, class In>
Out convert(In x) {
  if constexpr (std::is_same_v<Out, In>) {
    return x;
  } else if constexpr (kIsHalf<In>) {
    return convert<Out>(static_cast<float>(x));
  } else if constexpr (std::is_same_v<Out, bool>) {
    return x != In{0};
  } else if constexpr (kIsComplex<Out>) {
    using Part = typename Out::value_type;
    if constexpr (kIsComplex<In>)
      return Out(static_cast<Part>(x.real()), static_cast<Part>(x.imag()));
    else
      return Out(static_cast<Part>(x));
  } else if constexpr (kIsComplex<In>) {
    return convert<Out>(x.real());
  } else if constexpr (kIsHalf<Out>) {
    return Out(static_cast<float>(x));
  } else {
    return backplane::scalar::cast::of(x, Out{});
  }
}

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
