// Functions of one operand: sqrt, rsqrt, exp, expm1, log, log1p, log2, sin, cos, tan, atan, tanh, erf, sigmoid, silu,
// gelu. float16 and bfloat16 are computed in float32; complex types by the standard library.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/functions.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <cmath>
#include <iterator>

#include "kernels/elementwise.hpp"
#include "kernels/families.hpp"
#include "kernels/inner_loops-inl.hpp"
#include "kernels/vector_math-inl.hpp"

#ifndef BACKPLANE_CPU_FUNCTIONS
#define BACKPLANE_CPU_FUNCTIONS
namespace backplane::cpu {
struct Functions {
  Elementwise sqrt{}, rsqrt{}, exp{}, expm1{}, log{}, log1p{}, log2{}, sin{}, cos{}, tan{}, atan{}, tanh{}, erf{},
      sigmoid{}, silu{}, gelu{};
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
BACKPLANE_FUNCTION(Expm1, std::expm1(x))
BACKPLANE_FUNCTION(Log, std::log(x))
BACKPLANE_FUNCTION(Sin, std::sin(x))
BACKPLANE_FUNCTION(Cos, std::cos(x))
BACKPLANE_FUNCTION(Tan, std::tan(x))
BACKPLANE_FUNCTION(Tanh, std::tanh(x))
#undef BACKPLANE_FUNCTION

// Accurate near 0, where exp(x) - 1 and log(1 + x) lose their digits.
struct ComplexExpm1 {
  template <class T>
  static HWY_INLINE std::complex<T> call(std::complex<T> z) {
    const T half = std::sin(z.imag() / 2);
    const T growth = std::expm1(z.real());
    return {growth * std::cos(z.imag()) - 2 * half * half, (growth + 1) * std::sin(z.imag())};
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
struct ComplexLog2 {
  template <class T>
  static HWY_INLINE std::complex<T> call(std::complex<T> z) {
    return std::log(z) * T(1.44269504088896340736);
  }
};

template <class F>
void fill_vector(Elementwise& t) {
  t.inner[BP_FLOAT32] = vector_loop<F, float>;
  t.inner[BP_FLOAT64] = vector_loop<F, double>;
  t.grain = kCostlyGrain;
}
template <class F, class ComplexOp>
void fill_vector_and_complex(Elementwise& t) {
  fill_vector<F>(t);
  fill_unary_complex<ComplexOp>(t);
}
template <class Op, class ComplexOp>
void fill_plain(Elementwise& t) {
  fill_unary_floats<Op>(t);
  fill_unary_complex<ComplexOp>(t);
  t.grain = kCostlyGrain;
}

void fill_functions(Functions& t) {
  fill_plain<Sqrt, Sqrt>(t.sqrt);
  fill_plain<Rsqrt, Rsqrt>(t.rsqrt);
  fill_plain<Expm1, ComplexExpm1>(t.expm1);
  fill_plain<Tan, Tan>(t.tan);
  fill_vector_and_complex<VectorExp, Exp>(t.exp);
  fill_vector_and_complex<VectorLog, Log>(t.log);
  fill_vector_and_complex<VectorLog1p, ComplexLog1p>(t.log1p);
  fill_vector_and_complex<VectorLog2, ComplexLog2>(t.log2);
  fill_vector_and_complex<VectorSin, Sin>(t.sin);
  fill_vector_and_complex<VectorCos, Cos>(t.cos);
  fill_vector_and_complex<VectorTanh, Tanh>(t.tanh);
  fill_vector<VectorAtan>(t.atan);
  fill_vector<VectorErf>(t.erf);
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
      {"bp::sqrt", &t.sqrt, elementwise_unary}, {"bp::rsqrt", &t.rsqrt, elementwise_unary},
      {"bp::exp", &t.exp, elementwise_unary},   {"bp::expm1", &t.expm1, elementwise_unary},
      {"bp::log", &t.log, elementwise_unary},   {"bp::log1p", &t.log1p, elementwise_unary},
      {"bp::log2", &t.log2, elementwise_unary}, {"bp::sin", &t.sin, elementwise_unary},
      {"bp::cos", &t.cos, elementwise_unary},   {"bp::tan", &t.tan, elementwise_unary},
      {"bp::atan", &t.atan, elementwise_unary}, {"bp::tanh", &t.tanh, elementwise_unary},
      {"bp::erf", &t.erf, elementwise_unary},   {"bp::sigmoid", &t.sigmoid, elementwise_unary},
      {"bp::silu", &t.silu, elementwise_unary}, {"bp::gelu", &t.gelu, elementwise_unary},
  };
  register_rows(registrar, rows, std::size(rows), __FILE__, __LINE__);
}

}  // namespace backplane::cpu
#endif
