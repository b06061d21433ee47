// add, subtract, multiply, divide, maximum, minimum, complex_from. Integers wrap around.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/arithmetic.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/families.hpp"
#include "loops/elementwise.hpp"
#include "loops/inner_loops-inl.hpp"

#ifndef BACKPLANE_CPU_ARITHMETIC
#define BACKPLANE_CPU_ARITHMETIC
namespace backplane::cpu {
struct Arithmetic {
  Elementwise add{}, subtract{}, multiply{}, divide{}, maximum{}, minimum{}, complex_from{};
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
// The textbook product and quotient of complex numbers: std::complex's operator takes most of its time for infinities.
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
  static constexpr bool kExact = true;
  template <class T>
  static HWY_INLINE T call(T a, T b) {
    return (a > b) | (a != a) ? a : b;
  }
};
struct Minimum {
  static constexpr bool kExact = true;
  template <class T>
  static HWY_INLINE T call(T a, T b) {
    return (a < b) | (a != a) ? a : b;
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
  t.complex_from.inner[BP_FLOAT32] = binary_loop<ComplexFrom, float, std::complex<float>>;
  t.complex_from.inner[BP_FLOAT64] = binary_loop<ComplexFrom, double, std::complex<double>>;
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
      {"bp::add", &t.add, elementwise_binary},           {"bp::subtract", &t.subtract, elementwise_binary},
      {"bp::multiply", &t.multiply, elementwise_binary}, {"bp::divide", &t.divide, elementwise_binary},
      {"bp::maximum", &t.maximum, elementwise_binary},   {"bp::minimum", &t.minimum, elementwise_binary},
  };
  register_rows(registrar, rows, std::size(rows), __FILE__, __LINE__);
  // Not dtypes_of: a complex number has no half form, and its result is never an operand's buffer.
  registrar.kernel(BP_KERNEL(
      "bp::complex_from", "cpu", elementwise_binary, .dtypes = BP_DTYPE_BIT(BP_FLOAT32) | BP_DTYPE_BIT(BP_FLOAT64),
      .flags = BP_KERNEL_STRIDED | BP_KERNEL_LOOP | BP_KERNEL_IMMEDIATES, .context = &t.complex_from));
}

}  // namespace backplane::cpu
#endif
