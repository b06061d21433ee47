// Cheap operations on one operand: negative, abs, sign, conj, square, reciprocal, relu, floor, ceil, trunc, round.
//
// Integers wrap around: the negative of the smallest integer is itself.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/signs.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <cmath>
#include <iterator>
#include <type_traits>

#include "kernels/families.hpp"
#include "loops/elementwise.hpp"
#include "loops/inner_loops-inl.hpp"

#ifndef BACKPLANE_CPU_SIGNS
#define BACKPLANE_CPU_SIGNS
namespace backplane::cpu {
struct Signs {
  Elementwise negative{}, abs{}, sign{}, conj{}, square{}, reciprocal{}, relu{}, floor{}, ceil{}, trunc{}, round{};
};
}  // namespace backplane::cpu
#endif

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
struct Reciprocal {
  template <class T>
  static HWY_INLINE T call(T a) {
    return T(1) / a;
  }
};
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

void fill_signs(Signs& t) {
  fill_real<Negative>(t.negative);
  fill_unary_complex<Negative>(t.negative);
  t.negative.inner[BP_FLOAT16] = t.negative.inner[BP_BFLOAT16] = unary_loop<FlipSign, uint16_t>;
  fill_real<Abs>(t.abs);
  t.abs.inner[BP_COMPLEX64] = unary_loop<Abs, std::complex<float>, float>;
  t.abs.inner[BP_COMPLEX128] = unary_loop<Abs, std::complex<double>, double>;
  t.abs.inner[BP_FLOAT16] = t.abs.inner[BP_BFLOAT16] = unary_loop<ClearSign, uint16_t>;
  fill_real<Sign>(t.sign);
  fill_unary_complex<Sign>(t.sign);
  t.sign.inner[BP_FLOAT16] = unary_loop<HalfSign<0x3c00, 0x7c00>, uint16_t>;
  t.sign.inner[BP_BFLOAT16] = unary_loop<HalfSign<0x3f80, 0x7f80>, uint16_t>;
  fill_real<Conj>(t.conj);
  fill_unary_complex<Conj>(t.conj);
  fill_real<Square>(t.square);
  fill_unary_complex<Square>(t.square);
  fill_unary_floats<Reciprocal>(t.reciprocal);
  fill_unary_complex<Reciprocal>(t.reciprocal);
  fill_real<Relu>(t.relu);
  fill_real<Floor>(t.floor);
  fill_real<Ceil>(t.ceil);
  fill_real<Trunc>(t.trunc);
  fill_real<Round>(t.round);
  fill_unary_complex<ComplexRound>(t.round);
}

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::cpu {
HWY_EXPORT(fill_signs);

void register_signs(const Registrar& registrar) {
  static Signs t;
  HWY_DYNAMIC_DISPATCH(fill_signs)(t);
  const ElementwiseRow rows[] = {
      {"bp::negative", &t.negative, elementwise_unary}, {"bp::abs", &t.abs, elementwise_unary},
      {"bp::sign", &t.sign, elementwise_unary},         {"bp::conj", &t.conj, elementwise_unary},
      {"bp::square", &t.square, elementwise_unary},     {"bp::reciprocal", &t.reciprocal, elementwise_unary},
      {"bp::relu", &t.relu, elementwise_unary},         {"bp::floor", &t.floor, elementwise_unary},
      {"bp::ceil", &t.ceil, elementwise_unary},         {"bp::trunc", &t.trunc, elementwise_unary},
      {"bp::round", &t.round, elementwise_unary},
  };
  register_rows(registrar, rows, std::size(rows), __FILE__, __LINE__);
}

}  // namespace backplane::cpu
#endif
