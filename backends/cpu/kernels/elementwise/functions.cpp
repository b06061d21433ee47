// Roots, exponentials and logarithms, and activations made of them: sqrt, rsqrt, cbrt, exp, exp2, expm1, log, log1p,
// log2, log10, sigmoid, silu, gelu. float16 and bfloat16 are computed in float32; complex types by the standard
// library.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/functions.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <cmath>

#include "kernels/families.hpp"
#include "loops/chain_link.hpp"
#include "loops/elementwise.hpp"
#include "loops/inner_loops-inl.hpp"
#include "loops/vector_math-inl.hpp"
#include "simd/vector_gelu-inl.hpp"
#include "simd/vector_pow-inl.hpp"
#include "simd/vector_sqrt-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {

BACKPLANE_FUNCTION(Sqrt, std::sqrt(x))
BACKPLANE_FUNCTION(Rsqrt, T(1) / std::sqrt(x))
BACKPLANE_FUNCTION(Exp, std::exp(x))
BACKPLANE_FUNCTION(Log, std::log(x))

// Accurate near 0, where exp(x) - 1 and log(1 + x) lose their digits.
struct ComplexExpm1 {
  template <class T>
  static HWY_INLINE std::complex<T> call(std::complex<T> z) {
    if (!std::isfinite(z.real()) || !std::isfinite(z.imag())) {  // the C library's special cases, one less
      const std::complex<T> power = std::exp(z);
      return {power.real() - 1, power.imag()};
    }
    const T half = std::sin(z.imag() / 2);
    const T growth = std::expm1(z.real());
    return {growth * std::cos(z.imag()) + (T(0) - 2 * half * half), (growth + 1) * std::sin(z.imag())};  // +0 at -0
  }
};
struct ComplexLog1p {
  template <class T>
  static HWY_INLINE std::complex<T> call(std::complex<T> z) {
    const T re = z.real(), im = z.imag();
    // |1 + z|^2 = 1 + (2 re + re^2 + im^2)
    const T excess = 2 * re + re * re + im * im;
    const T modulus = std::abs(excess) < T(0.5) ? std::log1p(excess) / 2 : std::log(std::hypot(1 + re, im));
    return {modulus, std::atan2(im, 1 + re)};
  }
};
// Part by part: a product of complex numbers would make NaN of an infinite part times the zero of a real factor.
template <class T>
HWY_INLINE std::complex<T> scaled(std::complex<T> z, T factor) {
  return {z.real() * factor, z.imag() * factor};
}
struct ComplexLog2 {
  template <class T>
  static HWY_INLINE std::complex<T> call(std::complex<T> z) {
    return scaled(std::log(z), T(1.44269504088896340736));
  }
};
struct ComplexLog10 {
  template <class T>
  static HWY_INLINE std::complex<T> call(std::complex<T> z) {
    return scaled(std::log(z), T(0.43429448190325182765));
  }
};
struct ComplexExp2 {
  template <class T>
  static HWY_INLINE std::complex<T> call(std::complex<T> z) {
    return std::exp(scaled(z, T(0.69314718055994530942)));
  }
};

// Intel's processors approximate 1 / sqrt(x) alike, to the bit, and all roots made of it were compared; others' need
// not, and have a faster instruction for the root.
bool makes_roots_of_reciprocals() {
#if HWY_ARCH_X86
  return __builtin_cpu_is("intel");
#else
  return false;
#endif
}

std::span<ElementwiseRow> functions_rows() {
  static ElementwiseRow rows[] = {
      {"bp::sqrt",
       elementwise_unary,
       {makes_roots_of_reciprocals() ? fill_vector_and_complex<VectorSqrt, Sqrt> : fill_plain<Sqrt, Sqrt>}},
      {"bp::rsqrt", elementwise_unary, {fill_plain<Rsqrt, Rsqrt>}},
      {"bp::cbrt", elementwise_unary, {fill_vector<VectorCbrt>}},
      {"bp::exp", elementwise_unary, {fill_vector_and_complex<VectorExp, Exp>}},
      {"bp::exp2", elementwise_unary, {fill_vector_and_complex<VectorExp2, ComplexExp2>}},
      {"bp::expm1", elementwise_unary, {fill_vector_and_complex<VectorExpm1, ComplexExpm1>}},
      {"bp::log", elementwise_unary, {fill_vector_and_complex<VectorLog, Log>}},
      {"bp::log1p", elementwise_unary, {fill_vector_and_complex<VectorLog1p, ComplexLog1p>}},
      {"bp::log2", elementwise_unary, {fill_vector_and_complex<VectorLog2, ComplexLog2>}},
      {"bp::log10", elementwise_unary, {fill_vector_and_complex<VectorLog10, ComplexLog10>}},
      {"bp::sigmoid", elementwise_unary, {fill_vector<VectorSigmoid>}},
      {"bp::silu", elementwise_unary, {fill_vector<VectorSilu>}},
      {"bp::gelu", elementwise_unary, {fill_vector<VectorGelu>}},
  };
  return rows;
}

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::cpu {
HWY_EXPORT(functions_rows);

const ChainLink kSquareRoot("bp::sqrt", Link::kSquareRoot, ChainLink::Second::kNone);

const Family kFunctions([](const Registrar& registrar) {
  register_elementwise(registrar, HWY_DYNAMIC_DISPATCH(functions_rows)(), __FILE__, __LINE__);
});

}  // namespace backplane::cpu
#endif
