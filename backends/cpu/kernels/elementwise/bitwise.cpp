// bitwise_and/or/xor/invert, shifts, and the logical operations, which are the bitwise ones on bool (0 or 1).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/bitwise.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <iterator>
#include <type_traits>

#include "kernels/families.hpp"
#include "loops/elementwise.hpp"
#include "loops/inner_loops-inl.hpp"

#ifndef BACKPLANE_CPU_BITWISE
#define BACKPLANE_CPU_BITWISE
namespace backplane::cpu {
struct Bitwise {
  Elementwise both{}, either{}, differ{}, invert{}, left{}, right{};
};
}  // namespace backplane::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {

struct And {
  template <class T>
  static HWY_INLINE T call(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct Or {
  template <class T>
  static HWY_INLINE T call(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct Xor {
  template <class T>
  static HWY_INLINE T call(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};
struct Invert {
  template <class T>
  static HWY_INLINE T call(T a) {
    return static_cast<T>(~a);
  }
};
struct Not {
  static HWY_INLINE uint8_t call(uint8_t a) { return a == 0; }
};
// A distance of the width or more (or a negative one, which is one as unsigned) shifts everything out.
struct LeftShift {
  template <class T>
  static HWY_INLINE T call(T a, T b) {
    using U = std::make_unsigned_t<T>;
    constexpr unsigned kBits = sizeof(T) * 8;
    return static_cast<U>(b) < kBits ? static_cast<T>(uint64_t{static_cast<U>(a)} << static_cast<U>(b)) : T(0);
  }
};
struct RightShift {
  template <class T>
  static HWY_INLINE T call(T a, T b) {
    using U = std::make_unsigned_t<T>;
    constexpr unsigned kBits = sizeof(T) * 8;
    if constexpr (std::is_signed_v<T>) {
      return static_cast<T>(a >> (static_cast<U>(b) < kBits ? static_cast<U>(b) : kBits - 1));
    } else {
      return static_cast<U>(b) < kBits ? static_cast<T>(a >> b) : T(0);
    }
  }
};

void fill_bitwise(Bitwise& t) {
  fill_binary_words<And>(t.both);
  fill_binary_words<Or>(t.either);
  fill_binary_words<Xor>(t.differ);
  t.both.inner[BP_BOOL] = t.both.inner[BP_UINT8];
  t.either.inner[BP_BOOL] = t.either.inner[BP_UINT8];
  t.differ.inner[BP_BOOL] = t.differ.inner[BP_UINT8];
  fill_unary_integers<Invert>(t.invert);
  t.invert.inner[BP_BOOL] = unary_loop<Not, uint8_t>;
  fill_binary_integers<LeftShift>(t.left);
  fill_binary_integers<RightShift>(t.right);
}

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::cpu {
HWY_EXPORT(fill_bitwise);

void register_bitwise(const Registrar& registrar) {
  static Bitwise t;
  HWY_DYNAMIC_DISPATCH(fill_bitwise)(t);
  const ElementwiseRow rows[] = {
      {"bp::bitwise_and", &t.both, elementwise_binary},
      {"bp::bitwise_or", &t.either, elementwise_binary},
      {"bp::bitwise_xor", &t.differ, elementwise_binary},
      {"bp::bitwise_invert", &t.invert, elementwise_unary},
      {"bp::bitwise_left_shift", &t.left, elementwise_binary},
      {"bp::bitwise_right_shift", &t.right, elementwise_binary},
      {"bp::logical_and", &t.both, elementwise_binary},
      {"bp::logical_or", &t.either, elementwise_binary},
      {"bp::logical_xor", &t.differ, elementwise_binary},
      {"bp::logical_not", &t.invert, elementwise_unary},
  };
  register_rows(registrar, rows, std::size(rows), __FILE__, __LINE__);
}

}  // namespace backplane::cpu
#endif
