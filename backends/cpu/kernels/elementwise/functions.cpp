// Roots, exponentials and logarithms, and activations made of them: sqrt, rsqrt, cbrt, exp, exp2, expm1, log, log1p,
// log2, log10, sigmoid, silu, gelu. float16 and bfloat16 are computed in float32; complex types by the standard
// library.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/functions.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <cmath>
#include <iterator>

#include "kernels/families.hpp"
#include "loops/elementwise.hpp"
#include "loops/inner_loops-inl.hpp"
#include "simd/vector_gelu-inl.hpp"
#include "simd/vector_math-inl.hpp"
#include "simd/vector_pow-inl.hpp"

#ifndef BACKPLANE_CPU_FUNCTIONS
#define BACKPLANE_CPU_FUNCTIONS
namespace backplane::cpu {
struct Functions {
  Elementwise sqrt{}, rsqrt{}, cbrt{}, exp{}, exp2{}, expm1{}, log{}, log1p{}, log2{}, log10{}, sigmoid{}, silu{},
      gelu{};
};
}  // namespace backplane::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {

#define BACKPLANE_FUNCTION(name, expression) \
  struct name {                              \
    template <class T>                       \
    static HWY_INLINE T call(T x) {          \
      return expression;                     \
    }                                        \
  };
BACKPLANE_FUNCTION(Sqrt, std::sqrt(x))
BACKPLANE_FUNCTION(Rsqrt, T(1) / std::sqrt(x))
BACKPLANE_FUNCTION(Exp, std::exp(x))
BACKPLANE_FUNCTION(Log, std::log(x))
#undef BACKPLANE_FUNCTION

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

void fill_functions(Functions& t) {
  fill_plain<Sqrt, Sqrt>(t.sqrt);
  fill_plain<Rsqrt, Rsqrt>(t.rsqrt);
  fill_vector_and_complex<VectorExpm1, ComplexExpm1>(t.expm1);
  fill_vector_and_complex<VectorExp, Exp>(t.exp);
  fill_vector_and_complex<VectorLog, Log>(t.log);
  fill_vector_and_complex<VectorLog1p, ComplexLog1p>(t.log1p);
  fill_vector_and_complex<VectorLog2, ComplexLog2>(t.log2);
  fill_vector_and_complex<VectorExp2, ComplexExp2>(t.exp2);
  fill_vector_and_complex<VectorLog10, ComplexLog10>(t.log10);
  fill_vector<VectorCbrt>(t.cbrt);
  fill_vector<VectorSigmoid>(t.sigmoid);
  fill_vector<VectorSilu>(t.silu);
  fill_vector<VectorGelu>(t.gelu);
}

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::cpu {
HWY_EXPORT(fill_functions);

void register_functions(const Registrar& registrar) {
  static Functions t;
  HWY_DYNAMIC_DISPATCH(fill_functions)(t);
  const ElementwiseRow rows[] = {
      {"bp::sqrt", &t.sqrt, elementwise_unary},       {"bp::rsqrt", &t.rsqrt, elementwise_unary},
      {"bp::cbrt", &t.cbrt, elementwise_unary},       {"bp::exp", &t.exp, elementwise_unary},
      {"bp::exp2", &t.exp2, elementwise_unary},       {"bp::expm1", &t.expm1, elementwise_unary},
      {"bp::log", &t.log, elementwise_unary},         {"bp::log1p", &t.log1p, elementwise_unary},
      {"bp::log2", &t.log2, elementwise_unary},       {"bp::log10", &t.log10, elementwise_unary},
      {"bp::sigmoid", &t.sigmoid, elementwise_unary}, {"bp::silu", &t.silu, elementwise_unary},
      {"bp::gelu", &t.gelu, elementwise_unary},
  };
  register_rows(registrar, rows, std::size(rows), __FILE__, __LINE__);
}

}  // namespace backplane::cpu
#endif
