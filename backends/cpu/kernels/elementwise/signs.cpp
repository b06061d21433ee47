// Cheap operations on one operand: negative, abs, sign, conj, square, reciprocal, relu, floor, ceil, trunc, round.
//
// Integers wrap around: the negative of the smallest integer is itself.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/signs.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <cmath>
#include <type_traits>

#include "kernels/families.hpp"
#include "loops/chain_link.hpp"
#include "loops/conv_step.hpp"
#include "loops/elementwise.hpp"
#include "loops/inner_loops-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {

struct Negative {
  template <class T>
  static HWY_INLINE T call(T a) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(uint64_t{0} - static_cast<uint64_t>(a));
    } else {
      return -a;
    }
  }
};
struct Abs {
  template <class T>
  static HWY_INLINE T call(T a) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::abs(a);
    } else if constexpr (std::is_signed_v<T>) {
      return a < 0 ? Negative::call(a) : a;
    } else {
      return a;
    }
  }
  template <class T>
  static HWY_INLINE T call(std::complex<T> a) {
    return std::hypot(a.real(), a.imag());
  }
};
// The signs of half floats need no way through float32.
struct ClearSign {
  static HWY_INLINE uint16_t call(uint16_t a) { return a & 0x7fff; }
};
struct FlipSign {
  static HWY_INLINE uint16_t call(uint16_t a) { return a ^ 0x8000; }
};
// On the bits of a half float whose 1 has the bits kOne and whose infinity kInfinity.
template <uint16_t kOne, uint16_t kInfinity>
struct HalfSign {
  static HWY_INLINE uint16_t call(uint16_t a) {
    const auto magnitude = static_cast<uint16_t>(a & 0x7fff), one = static_cast<uint16_t>((a & 0x8000) | kOne);
    const uint16_t number = magnitude == 0 ? uint16_t{0} : one;
    return magnitude > kInfinity ? a : number;
  }
};
struct Sign {
  template <class T>
  static HWY_INLINE T call(T a) {
    if constexpr (std::is_floating_point_v<T>) {
      return a != a ? a : static_cast<T>((a > 0) - (a < 0));
    } else {
      return static_cast<T>((a > T(0)) - (a < T(0)));
    }
  }
  template <class T>
  static HWY_INLINE std::complex<T> call(std::complex<T> a) {
    const T modulus = std::hypot(a.real(), a.imag());
    return modulus == 0 ? std::complex<T>(0) : a / modulus;
  }
};
struct Conj {
  template <class T>
  static HWY_INLINE T call(T a) {
    return a;
  }
  template <class T>
  static HWY_INLINE std::complex<T> call(std::complex<T> a) {
    return {a.real(), -a.imag()};
  }
};
struct Square {
  template <class T>
  static HWY_INLINE T call(T a) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(a));
    } else {
      return a * a;
    }
  }
  template <class T>
  static HWY_INLINE std::complex<T> call(std::complex<T> a) {
    return {a.real() * a.real() - a.imag() * a.imag(), 2 * a.real() * a.imag()};
  }
};
BACKPLANE_FUNCTION(Reciprocal, T(1) / x)
struct Relu {
  template <class T>
  static HWY_INLINE T call(T a) {
    return a < T(0) ? T(0) : a;  // a NaN stays
  }
};
#define BACKPLANE_ROUNDING(name, function)   \
  struct name {                              \
    template <class T>                       \
    static HWY_INLINE T call(T a) {          \
      if constexpr (std::is_integral_v<T>) { \
        return a;                            \
      } else {                               \
        return function(a);                  \
      }                                      \
    }                                        \
  };
BACKPLANE_ROUNDING(Floor, std::floor)
BACKPLANE_ROUNDING(Ceil, std::ceil)
BACKPLANE_ROUNDING(Trunc, std::trunc)
BACKPLANE_ROUNDING(Round, std::rint)  // ties to even, the mode that the processor is in
#undef BACKPLANE_ROUNDING
struct ComplexRound {
  template <class T>
  static HWY_INLINE std::complex<T> call(std::complex<T> z) {
    return {std::rint(z.real()), std::rint(z.imag())};
  }
};

template <class Op>
void fill_real(Elementwise& t) {
  fill_unary_integers<Op>(t);
  fill_unary_floats<Op>(t);
}

// Of the bits of each half float.
template <class OfFloat16, class OfBfloat16 = OfFloat16>
void fill_half_bits(Elementwise& t) {
  t.inner[BP_FLOAT16] = unary_loop<OfFloat16, uint16_t>;
  t.inner[BP_BFLOAT16] = unary_loop<OfBfloat16, uint16_t>;
}
void fill_moduli(Elementwise& t) {
  t.inner[BP_COMPLEX64] = unary_loop<Abs, std::complex<float>, float>;
  t.inner[BP_COMPLEX128] = unary_loop<Abs, std::complex<double>, double>;
}

std::span<ElementwiseRow> signs_rows() {
  static ElementwiseRow rows[] = {
      {"bp::negative",
       elementwise_unary,
       {fill_real<Negative>, fill_unary_complex<Negative>, fill_half_bits<FlipSign>}},
      {"bp::abs", elementwise_unary, {fill_real<Abs>, fill_moduli, fill_half_bits<ClearSign>}},
      {"bp::sign",
       elementwise_unary,
       {fill_real<Sign>, fill_unary_complex<Sign>, fill_half_bits<HalfSign<0x3c00, 0x7c00>, HalfSign<0x3f80, 0x7f80>>}},
      {"bp::conj", elementwise_unary, {fill_real<Conj>, fill_unary_complex<Conj>}},
      {"bp::square", elementwise_unary, {fill_real<Square>, fill_unary_complex<Square>}},
      {"bp::reciprocal", elementwise_unary, {fill_unary_floats<Reciprocal>, fill_unary_complex<Reciprocal>}},
      {"bp::relu", elementwise_unary, {fill_real<Relu>}},
      {"bp::floor", elementwise_unary, {fill_real<Floor>}},
      {"bp::ceil", elementwise_unary, {fill_real<Ceil>}},
      {"bp::trunc", elementwise_unary, {fill_real<Trunc>}},
      {"bp::round", elementwise_unary, {fill_real<Round>, fill_unary_complex<ComplexRound>}},
  };
  return rows;
}

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::cpu {
HWY_EXPORT(signs_rows);

const ConvStepOp kRelu("bp::relu", ConvRole::kZeroBelow);
const ChainLink kSquare("bp::square", Link::kMultiply, ChainLink::Second::kFirst);
const ChainLink kNegative("bp::negative", Link::kMultiply, ChainLink::Second::kNumber, -1);

const Family kSigns([](const Registrar& registrar) {
  register_elementwise(registrar, HWY_DYNAMIC_DISPATCH(signs_rows)(), __FILE__, __LINE__);
});

}  // namespace backplane::cpu
#endif
