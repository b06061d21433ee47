// add, subtract, multiply, divide, floor_divide, remainder, maximum, minimum, complex_from.
//
// Integers wrap around. floor_divide and remainder follow the sign of the divisor; an integer divisor of 0 is a data
// error, and the smallest integer divided by -1 wraps instead of trapping.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/arithmetic.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/elementwise.hpp"
#include "kernels/families.hpp"
#include "kernels/inner_loops-inl.hpp"

#ifndef BACKPLANE_CPU_ARITHMETIC
#define BACKPLANE_CPU_ARITHMETIC
namespace backplane::cpu {
struct Arithmetic {
  Elementwise add{}, subtract{}, multiply{}, divide{}, floor_divide{}, remainder{}, maximum{}, minimum{},
      complex_from{};
};
}  // namespace backplane::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {

struct Add {
  template <class T>
  static HWY_INLINE T call(T a, T b) {
    return static_cast<T>(a + b);
  }
};
struct Subtract {
  template <class T>
  static HWY_INLINE T call(T a, T b) {
    return static_cast<T>(a - b);
  }
};
struct Multiply {
  template <class T>
  static HWY_INLINE T call(T a, T b) {
    // Two uint16 would be multiplied as int, which overflows.
    if constexpr (std::is_same_v<T, uint16_t>) return static_cast<T>(uint32_t{a} * uint32_t{b});
    return static_cast<T>(a * b);
  }
};
// The textbook product and quotient of complex numbers: std::complex's operator spends its time on infinities.
struct ComplexMultiply {
  template <class T>
  static HWY_INLINE std::complex<T> call(std::complex<T> a, std::complex<T> b) {
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  }
};
struct Divide {
  template <class T>
  static HWY_INLINE T call(T a, T b) {
    return a / b;
  }
};

struct Maximum {
  template <class T>
  static HWY_INLINE T call(T a, T b) {
    return (a > b) | (a != a) ? a : b;
  }
};
struct Minimum {
  template <class T>
  static HWY_INLINE T call(T a, T b) {
    return (a < b) | (a != a) ? a : b;
  }
};

struct FloorDivide {
  template <class T>
  static HWY_INLINE T call(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      // By the exact remainder, so that the quotient of an exact multiple is exact (Python's definition); where the
      // plain quotient is 0, infinite or NaN it is the array API's result, sign included.
      if (a == 0 || b == 0 || !std::isfinite(a) || std::isinf(b)) return a / b;
      const T rest = std::fmod(a, b);
      T quotient = (a - rest) / b;
      if (rest != 0 && (rest < 0) != (b < 0)) quotient -= 1;
      const T floored = std::floor(quotient);
      return quotient - floored > T(0.5) ? floored + 1 : floored;
    } else if constexpr (std::is_signed_v<T>) {
      using U = std::make_unsigned_t<T>;
      if (b == -1) return static_cast<T>(U{0} - static_cast<U>(a));
      const T quotient = static_cast<T>(a / b);
      return static_cast<T>(quotient - ((a % b != 0) & ((a < 0) != (b < 0))));
    } else {
      return static_cast<T>(a / b);
    }
  }
};
struct Remainder {
  template <class T>
  static HWY_INLINE T call(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      const T rest = std::fmod(a, b);
      if (rest == 0) return std::copysign(T(0), b);
      return (rest < 0) != (b < 0) ? rest + b : rest;
    } else if constexpr (std::is_signed_v<T>) {
      if (b == -1) return 0;
      const T rest = static_cast<T>(a % b);
      return static_cast<T>((rest != 0) & ((rest < 0) != (b < 0)) ? rest + b : rest);
    } else {
      return static_cast<T>(a % b);
    }
  }
};
struct ComplexFrom {
  template <class T>
  static HWY_INLINE std::complex<T> call(T re, T im) {
    return {re, im};
  }
};

void fill_arithmetic(Arithmetic& t) {
  fill_binary_words<Add>(t.add);
  fill_binary_floats<Add>(t.add);
  fill_binary_complex<Add>(t.add);
  fill_binary_words<Subtract>(t.subtract);
  fill_binary_floats<Subtract>(t.subtract);
  fill_binary_complex<Subtract>(t.subtract);
  fill_binary_words<Multiply>(t.multiply);
  fill_binary_floats<Multiply>(t.multiply);
  fill_binary_complex<ComplexMultiply>(t.multiply);
  fill_binary_floats<Divide>(t.divide);
  fill_binary_complex<Divide>(t.divide);
  fill_binary_integers<Maximum>(t.maximum);
  fill_binary_floats<Maximum>(t.maximum);
  fill_binary_integers<Minimum>(t.minimum);
  fill_binary_floats<Minimum>(t.minimum);
  fill_checked<FloorDivide, false>(t.floor_divide);
  fill_binary_floats<FloorDivide>(t.floor_divide);
  fill_checked<Remainder, false>(t.remainder);
  fill_binary_floats<Remainder>(t.remainder);
  t.complex_from.inner[BP_FLOAT32] = binary_loop<ComplexFrom, float, std::complex<float>>;
  t.complex_from.inner[BP_FLOAT64] = binary_loop<ComplexFrom, double, std::complex<double>>;
  t.floor_divide.grain = t.remainder.grain = kCostlyGrain;
}

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::cpu {
HWY_EXPORT(fill_arithmetic);

void register_arithmetic(const Registrar& registrar) {
  static Arithmetic t;
  HWY_DYNAMIC_DISPATCH(fill_arithmetic)(t);
  const ElementwiseRow rows[] = {
      {"bp::add", &t.add, elementwise_binary},
      {"bp::subtract", &t.subtract, elementwise_binary},
      {"bp::multiply", &t.multiply, elementwise_binary},
      {"bp::divide", &t.divide, elementwise_binary},
      {"bp::floor_divide", &t.floor_divide, elementwise_binary},
      {"bp::remainder", &t.remainder, elementwise_binary},
      {"bp::maximum", &t.maximum, elementwise_binary},
      {"bp::minimum", &t.minimum, elementwise_binary},
  };
  register_rows(registrar, rows, std::size(rows), __FILE__, __LINE__);
  // Not dtypes_of: a complex number has no half form, and its result is never an operand's buffer.
  registrar.kernel(BP_KERNEL(
      "bp::complex_from", "cpu", elementwise_binary, .dtypes = BP_DTYPE_BIT(BP_FLOAT32) | BP_DTYPE_BIT(BP_FLOAT64),
      .flags = BP_KERNEL_STRIDED | BP_KERNEL_LOOP | BP_KERNEL_IMMEDIATES, .context = &t.complex_from));
}

}  // namespace backplane::cpu
#endif
