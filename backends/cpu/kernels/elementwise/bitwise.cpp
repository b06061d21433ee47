// bitwise_and/or/xor/invert, shifts, and the logical operations on bool; for numbers they are left to the ops'
// decompositions. A bool is true for any byte but 0, because borrowed memory may hold others. Results are 0 or 1.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/bitwise.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <type_traits>

#include "kernels/elementwise/of_bools-inl.hpp"
#include "kernels/families.hpp"
#include "loops/elementwise.hpp"
#include "loops/inner_loops-inl.hpp"

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
BACKPLANE_FUNCTION(Invert, static_cast<T>(~x))
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

template <class Op>
void fill_bool(Elementwise& t) {
  t.inner[BP_BOOL] = binary_loop<OfBools<Op>, uint8_t>;
}
template <class Op>
void fill_words_and_bool(Elementwise& t) {
  fill_binary_words<Op>(t);
  fill_bool<Op>(t);
}
void fill_not(Elementwise& t) { t.inner[BP_BOOL] = unary_loop<Not, uint8_t>; }
void fill_invert(Elementwise& t) {
  fill_unary_integers<Invert>(t);
  fill_not(t);
}

std::span<ElementwiseRow> bitwise_rows() {
  static ElementwiseRow rows[] = {
      {"bp::bitwise_and", elementwise_binary, {fill_words_and_bool<And>}},
      {"bp::bitwise_or", elementwise_binary, {fill_words_and_bool<Or>}},
      {"bp::bitwise_xor", elementwise_binary, {fill_words_and_bool<Xor>}},
      {"bp::bitwise_invert", elementwise_unary, {fill_invert}},
      {"bp::bitwise_left_shift", elementwise_binary, {fill_binary_integers<LeftShift>}},
      {"bp::bitwise_right_shift", elementwise_binary, {fill_binary_integers<RightShift>}},
      {"bp::logical_and", elementwise_binary, {fill_bool<And>}},
      {"bp::logical_or", elementwise_binary, {fill_bool<Or>}},
      {"bp::logical_xor", elementwise_binary, {fill_bool<Xor>}},
      {"bp::logical_not", elementwise_unary, {fill_not}},
  };
  return rows;
}

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::cpu {
HWY_EXPORT(bitwise_rows);

const Family kBitwise([](const Registrar& registrar) {
  register_elementwise(registrar, HWY_DYNAMIC_DISPATCH(bitwise_rows)(), __FILE__, __LINE__);
});

}  // namespace backplane::cpu
#endif
