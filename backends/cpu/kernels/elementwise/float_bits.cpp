// Operations on the representation or the order of numbers: signbit, copysign, nextafter, fmax, fmin, heaviside,
// gcd, lcm.
//
// The half floats of signbit, copysign, fmax, fmin and heaviside pass through float32 like all others; the neighbour of
// a half float is its own, so nextafter has loops for them.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/float_bits.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <cmath>
#include <cstring>
#include <numeric>
#include <type_traits>

#include "kernels/families.hpp"
#include "loops/elementwise.hpp"
#include "loops/inner_loops-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {

struct SignBit {
  template <class T>
  static HWY_INLINE uint8_t call(T a) {
    if constexpr (std::is_floating_point_v<T>) {
      using Word = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
      Word word;
      std::memcpy(&word, &a, sizeof(T));
      return word < 0;
    } else {
      return a < T(0);
    }
  }
};
struct CopySign {
  static constexpr bool kExact = true;
  template <class T>
  static HWY_INLINE T call(T a, T b) {
    return std::copysign(a, b);
  }
};

// On the bits of a float whose infinity has the bits kInfinity: magnitudes are ordered like the numbers.
template <class Word, Word kInfinity>
struct NextAfter {
  static HWY_INLINE Word call(Word x, Word y) {
    constexpr Word kSign = static_cast<Word>(Word{1} << (sizeof(Word) * 8 - 1));
    const Word a = x & static_cast<Word>(~kSign), b = y & static_cast<Word>(~kSign);
    const bool inwards = (((x ^ y) & kSign) != 0) | (a > b);
    const Word moved = static_cast<Word>(x + (inwards ? static_cast<Word>(-1) : Word{1}));
    const Word from_zero = static_cast<Word>((y & kSign) | 1);
    Word next = a == 0 ? from_zero : moved;  // choices without branches: the loop vectorises
    next = (x == y) | ((a | b) == 0) ? y : next;
    next = b > kInfinity ? y : next;
    return a > kInfinity ? x : next;
  }
};

struct Fmax {
  static constexpr bool kExact = true;
  template <class T>
  static HWY_INLINE T call(T a, T b) {
    return (a > b) | (b != b) ? a : b;
  }
};
struct Fmin {
  static constexpr bool kExact = true;
  template <class T>
  static HWY_INLINE T call(T a, T b) {
    return (a < b) | (b != b) ? a : b;
  }
};
struct Heaviside {
  static constexpr bool kExact = true;
  template <class T>
  static HWY_INLINE T call(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      return a != a ? a : a == 0 ? b : static_cast<T>(a > 0);
    } else {
      return a == 0 ? b : static_cast<T>(a > T(0));
    }
  }
};
// In the unsigned type: the magnitude of the smallest integer wraps to itself.
template <class T>
HWY_INLINE std::make_unsigned_t<T> magnitude(T a) {
  using U = std::make_unsigned_t<T>;
  return a < T(0) ? static_cast<U>(U{0} - static_cast<U>(a)) : static_cast<U>(a);
}
struct Gcd {
  template <class T>
  static HWY_INLINE T call(T a, T b) {
    return static_cast<T>(std::gcd(magnitude(a), magnitude(b)));
  }
};
struct Lcm {
  template <class T>
  static HWY_INLINE T call(T a, T b) {
    const uint64_t x = magnitude(a), y = magnitude(b), d = std::gcd(x, y);
    const T product = static_cast<T>(d == 0 ? 0 : x / d * y);
    return static_cast<T>(magnitude(product));
  }
};

void fill_signbit(Elementwise& t) {
  t.inner[BP_INT8] = unary_loop<SignBit, int8_t, uint8_t>;
  t.inner[BP_INT16] = unary_loop<SignBit, int16_t, uint8_t>;
  t.inner[BP_INT32] = unary_loop<SignBit, int32_t, uint8_t>;
  t.inner[BP_INT64] = unary_loop<SignBit, int64_t, uint8_t>;
  t.inner[BP_UINT8] = unary_loop<SignBit, uint8_t, uint8_t>;
  t.inner[BP_UINT16] = unary_loop<SignBit, uint16_t, uint8_t>;
  t.inner[BP_UINT32] = unary_loop<SignBit, uint32_t, uint8_t>;
  t.inner[BP_UINT64] = unary_loop<SignBit, uint64_t, uint8_t>;
  t.inner[BP_FLOAT16] = t.inner[BP_BFLOAT16] = unary_loop<SignBit, int16_t, uint8_t>;
  t.inner[BP_FLOAT32] = unary_loop<SignBit, float, uint8_t>;
  t.inner[BP_FLOAT64] = unary_loop<SignBit, double, uint8_t>;
}
void fill_nextafter(Elementwise& t) {
  t.inner[BP_FLOAT16] = binary_loop<NextAfter<uint16_t, 0x7c00>, uint16_t>;
  t.inner[BP_BFLOAT16] = binary_loop<NextAfter<uint16_t, 0x7f80>, uint16_t>;
  t.inner[BP_FLOAT32] = binary_loop<NextAfter<uint32_t, 0x7f800000>, uint32_t>;
  t.inner[BP_FLOAT64] = binary_loop<NextAfter<uint64_t, 0x7ff0000000000000>, uint64_t>;
}
template <class Op>
void fill_costly_integers(Elementwise& t) {
  fill_binary_integers<Op>(t);
  t.grain = kCostlyGrain;
}

std::span<ElementwiseRow> float_bits_rows() {
  static ElementwiseRow rows[] = {
      {"bp::signbit", elementwise_unary, {fill_signbit}},
      {"bp::copysign", elementwise_binary, {fill_binary_floats<CopySign>}},
      {"bp::nextafter", elementwise_binary, {fill_nextafter}},
      {"bp::fmax", elementwise_binary, {fill_binary_integers<Fmax>, fill_binary_floats<Fmax>}},
      {"bp::fmin", elementwise_binary, {fill_binary_integers<Fmin>, fill_binary_floats<Fmin>}},
      {"bp::heaviside", elementwise_binary, {fill_binary_integers<Heaviside>, fill_binary_floats<Heaviside>}},
      {"bp::gcd", elementwise_binary, {fill_costly_integers<Gcd>}},
      {"bp::lcm", elementwise_binary, {fill_costly_integers<Lcm>}},
  };
  return rows;
}

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::cpu {
HWY_EXPORT(float_bits_rows);

const Family kFloatBits([](const Registrar& registrar) {
  register_elementwise(registrar, HWY_DYNAMIC_DISPATCH(float_bits_rows)(), __FILE__, __LINE__);
});

}  // namespace backplane::cpu
#endif
