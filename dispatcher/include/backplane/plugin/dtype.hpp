// Dtypes as C++ types, for kernels: storage types of the two half floats, the mapping in both directions, and
// dispatch from a run-time dtype to a template argument.
//
// Not the contract: header-only sugar over backplane/abi. Everything here is pure.
#pragma once

#include <bit>
#include <complex>
#include <cstdint>
#include <type_traits>

#include "backplane/error.hpp"

namespace backplane::plugin {

// Storage only: arithmetic goes through float. Conversion rounds to nearest, ties to even.
struct bfloat16 {
  uint16_t bits = 0;
  bfloat16() = default;
  explicit bfloat16(float value) {
    const uint32_t u = std::bit_cast<uint32_t>(value);
    const bool nan = (u & 0x7fffffffu) > 0x7f800000u;
    // A NaN's payload may lie in the dropped half alone; the quiet bit keeps it a NaN.
    bits = static_cast<uint16_t>(nan ? (u >> 16) | 0x40u : (u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
  }
  operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

struct float16 {
  uint16_t bits = 0;
  float16() = default;
  explicit float16(float value) {
    const uint32_t u = std::bit_cast<uint32_t>(value);
    const uint32_t sign = (u >> 16) & 0x8000u;
    const uint32_t magnitude = u & 0x7fffffffu;
    uint32_t half;
    if (magnitude > 0x7f800000u) {
      half = 0x7e00u | ((magnitude >> 13) & 0x1ffu);
    } else if (magnitude >= 0x477ff000u) {  // rounds to 65536 or more
      half = 0x7c00u;
    } else if (magnitude >= 0x38800000u) {  // normal in half: rebias the exponent by 112, round 13 bits away
      half = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    } else {  // subnormal: adding 0.5 aligns the value so that the FPU rounds it at 2^-24
      half = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
    }
    bits = static_cast<uint16_t>(sign | half);
  }
  operator float() const {
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
    const uint32_t magnitude = bits & 0x7fffu;
    uint32_t u = magnitude << 13;
    if (magnitude >= 0x7c00u) {
      u |= 0x7f800000u;
    } else if (magnitude >= 0x400u) {
      u += 0x38000000u;
    } else {  // subnormal: (2^-14 + m 2^-24) - 2^-14 is exact
      u = std::bit_cast<uint32_t>(std::bit_cast<float>(u + 0x38800000u) - std::bit_cast<float>(0x38800000u));
    }
    return std::bit_cast<float>(sign | u);
  }
};

// Host types of the same size as another dtype's; `long long` where int64_t is `long`, and so on, are not listed.
template <class T>
inline constexpr bp_dtype kDtypeOf = BP_DTYPE_NONE;
#define BP_DTYPE_OF(constant, number, name, type, bytes, code) \
  template <>                                                  \
  inline constexpr bp_dtype kDtypeOf<type> = BP_##constant;
BP_DTYPES(BP_DTYPE_OF)
#undef BP_DTYPE_OF

#define BP_DTYPE_BYTES(constant, number, name, type, bytes, code) bytes,
inline constexpr uint8_t kItemSize[BP_DTYPE_COUNT] = {BP_DTYPES(BP_DTYPE_BYTES)};
#undef BP_DTYPE_BYTES

inline const char* dtype_name(bp_dtype dtype) {
#define BP_DTYPE_NAME(constant, number, name, type, bytes, code) name,
  static constexpr const char* kNames[BP_DTYPE_COUNT] = {BP_DTYPES(BP_DTYPE_NAME)};
#undef BP_DTYPE_NAME
  return dtype < BP_DTYPE_COUNT ? kNames[dtype] : "no dtype";
}

template <class T>
inline constexpr bool kIsHalf = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;
template <class T>
inline constexpr bool kIsComplex = false;
template <class T>
inline constexpr bool kIsComplex<std::complex<T>> = true;

// The type that T is computed in: float for the half floats, else T.
template <class T>
using Compute = std::conditional_t<kIsHalf<T>, float, T>;

// Calls f.operator()<T>() for the type of `dtype`, which must be in Mask; only those types are instantiated.
//   dispatch_dtype<BP_MASK_FLOATING>(out.dtype(), [&]<class T>() { ... });
template <bp_dtype_mask Mask, class F>
decltype(auto) dispatch_dtype(bp_dtype dtype, F&& f) {
#define BP_DTYPE_CASE(constant, number, name, type, bytes, code)                                   \
  case BP_##constant:                                                                              \
    if constexpr ((Mask & BP_DTYPE_BIT(BP_##constant)) != 0) return f.template operator()<type>(); \
    break;
  switch (dtype) {
    BP_DTYPES(BP_DTYPE_CASE)
    default:
      break;
  }
#undef BP_DTYPE_CASE
  ::backplane::detail::fail(BP_ERROR_DTYPE, "this kernel was not written for ", dtype_name(dtype));
}

}  // namespace backplane::plugin
