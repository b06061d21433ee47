// add, subtract, multiply, divide, maximum, minimum, complex_from. Integers wrap around.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/arithmetic.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/families.hpp"
#include "loops/chain_link.hpp"
#include "loops/conv_step.hpp"
#include "loops/elementwise.hpp"
#include "loops/inner_loops-inl.hpp"

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

struct Either {
  static HWY_INLINE uint8_t call(uint8_t a, uint8_t b) { return a | b; }
};
struct Both {
  static HWY_INLINE uint8_t call(uint8_t a, uint8_t b) { return (a != 0) & (b != 0); }
};

template <class Op, class OfBools>
void fill_words_and_bool(Elementwise& t) {
  fill_binary_words<Op>(t);
  t.inner[BP_BOOL] = binary_loop<OfBools, uint8_t>;
}
template <class Op>
void fill_integers_and_bool(Elementwise& t) {
  fill_binary_integers<Op>(t);
  t.inner[BP_BOOL] = t.inner[BP_UINT8];
}

void fill_complex_from(Elementwise& t) {
  t.inner[BP_FLOAT32] = binary_loop<ComplexFrom, float, std::complex<float>>;
  t.inner[BP_FLOAT64] = binary_loop<ComplexFrom, double, std::complex<double>>;
}

std::span<ElementwiseRow> arithmetic_rows() {
  static ElementwiseRow rows[] = {
      {"bp::add",
       elementwise_binary,
       {fill_words_and_bool<Add, Either>, fill_binary_floats<Add>, fill_binary_complex<Add>}},
      {"bp::subtract",
       elementwise_binary,
       {fill_binary_words<Subtract>, fill_binary_floats<Subtract>, fill_binary_complex<Subtract>}},
      {"bp::multiply",
       elementwise_binary,
       {fill_words_and_bool<Multiply, Both>, fill_binary_floats<Multiply>, fill_binary_complex<ComplexMultiply>}},
      {"bp::divide", elementwise_binary, {fill_binary_floats<Divide>, fill_binary_complex<Divide>}},
      {"bp::maximum", elementwise_binary, {fill_integers_and_bool<Maximum>, fill_binary_floats<Maximum>}},
      {"bp::minimum", elementwise_binary, {fill_integers_and_bool<Minimum>, fill_binary_floats<Minimum>}},
      // A complex number has no half form, and its result is never an operand's buffer.
      {"bp::complex_from",
       elementwise_binary,
       {fill_complex_from},
       BP_DTYPE_BIT(BP_FLOAT32) | BP_DTYPE_BIT(BP_FLOAT64),
       kElementwiseFlags & ~BP_KERNEL_INPLACE},
  };
  return rows;
}

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::cpu {
HWY_EXPORT(arithmetic_rows);

const ChainLink kArithmeticLinks[] = {{"bp::add", Link::kAdd},
                                      {"bp::subtract", Link::kSubtract},
                                      {"bp::multiply", Link::kMultiply},
                                      {"bp::divide", Link::kDivide}};

const ConvStepOp kBounds[] = {{"bp::maximum", ConvRole::kLow}, {"bp::minimum", ConvRole::kHigh}};

const Family kArithmetic([](const Registrar& registrar) {
  register_elementwise(registrar, HWY_DYNAMIC_DISPATCH(arithmetic_rows)(), __FILE__, __LINE__);
});

}  // namespace backplane::cpu
#endif
