// exp, exp2, expm1, sinh, cosh and tanh on vectors of float32 and float64; included once per Highway target.
//
// An argument is n ln 2 + r with |r| <= ln(2) / 2, so that e^x = 2^n e^r. Polynomials are Chebyshev fits; all have
// errors below a quarter of a unit in the last place. Errors of the functions: docs/reference/accuracy.md.
#if defined(BACKPLANE_CPU_VECTOR_EXP) == defined(HWY_TARGET_TOGGLE)
#ifdef BACKPLANE_CPU_VECTOR_EXP
#undef BACKPLANE_CPU_VECTOR_EXP
#else
#define BACKPLANE_CPU_VECTOR_EXP
#endif

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
inline constexpr bool kIsFloat32 = sizeof(T) == 4;
template <class T>
inline constexpr int kFraction = kIsFloat32<T> ? 23 : 52;  // bits of the fraction
template <class T>
inline constexpr T kTiny = kIsFloat32<T> ? T(1.5e-8) : T(2.7e-17);  // below it f(x) = x (1 + x / 2) rounds to x
template <class T>
inline constexpr T kLn2High = kIsFloat32<T> ? T(0.693145751953125)
                                            : T(0.69314718055989033019);  // few bits: n times it is exact
template <class T>
inline constexpr T kLn2Low = kIsFloat32<T> ? T(1.4286068203094172321e-6) : T(5.4979230187083711747e-14);
template <class T>
inline constexpr T kRounder = kIsFloat32<T> ? T(12582912)
                                            : T(6755399441055744);  // added, leaves the nearest integer in the low bits

template <class D, class V = hn::Vec<D>, size_t N>
HWY_INLINE V polynomial(D d, V x, const double (&coefficients)[N]) {
  using T = hn::TFromD<D>;
  const auto horner = [&](V at, size_t first, size_t step) HWY_ATTR {
    size_t i = first + (N - 1 - first) / step * step;
    V y = hn::Set(d, static_cast<T>(coefficients[i]));
    for (; i > first; i -= step) y = hn::MulAdd(y, at, hn::Set(d, static_cast<T>(coefficients[i - step])));
    return y;
  };
  // Two chains of a long polynomial, or four, wait for each other less than one. The last steps, whose rounding counts,
  // are Horner's.
  if constexpr (N < 8) {
    return horner(x, 0, 1);
  } else {
    const V q = hn::Mul(x, x);
    V y;
    if constexpr (N < 12) {
      y = hn::MulAdd(horner(q, 3, 2), x, horner(q, 2, 2));
    } else {
      const V u = hn::Mul(q, q);
      y = hn::MulAdd(hn::MulAdd(horner(u, 5, 4), x, horner(u, 4, 4)), q,
                     hn::MulAdd(horner(u, 3, 4), x, horner(u, 2, 4)));
    }
    const V first = hn::Set(d, static_cast<T>(coefficients[0])), second = hn::Set(d, static_cast<T>(coefficients[1]));
    return hn::MulAdd(hn::MulAdd(y, x, second), x, first);
  }
}

// x, but finite at -inf, where its factor is 0. A NaN gives anything.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V finite_below(D d, V x) {
  return hn::Max(x, hn::Set(d, -std::numeric_limits<hn::TFromD<D>>::max()));
}
// Lane by lane through the C library: arguments that no fast way covers.
template <class D, class F, class V = hn::Vec<D>>
HWY_NOINLINE V by_library(D d, V x, F function) {
  using T = hn::TFromD<D>;
  HWY_ALIGN T lanes[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(x, d, lanes);
  for (size_t i = 0; i < hn::Lanes(d); ++i) lanes[i] = function(lanes[i]);
  return hn::Load(d, lanes);
}

// (e^r - 1 - r) / r^2
inline constexpr double kExpSingle[] = {0.500000001353872989,   0.16666666681704215,    0.0416664641974056923,
                                        0.00833331084464786256, 0.00139337307157920825, 0.00019891080463998842};
inline constexpr double kExpDouble[] = {0.5,
                                        0.16666666666666671,
                                        0.0416666666666666698,
                                        0.00833333333332608312,
                                        0.00138888888888837112,
                                        0.000198412698750022788,
                                        0.0000248015873256774619,
                                        2.75572551700008874e-6,
                                        2.75572734787185805e-7,
                                        2.51053127296221018e-8,
                                        2.09147553258932022e-9};
template <class D, class V = hn::Vec<D>>
HWY_INLINE V expm1_of_rest(D d, V r) {
  V p;
  if constexpr (kIsFloat32<hn::TFromD<D>>) {
    p = polynomial(d, r, kExpSingle);
  } else {
    p = polynomial(d, r, kExpDouble);
  }
  return hn::MulAdd(hn::Mul(r, r), p, r);
}

// x = n ln 2 + r; `shifted` holds n in its low bits.
template <class V>
struct Reduced {
  V shifted, n, r;
};
template <class D, class V = hn::Vec<D>>
HWY_INLINE Reduced<V> reduce_exp(D d, V x) {
  using T = hn::TFromD<D>;
  const V rounder = hn::Set(d, kRounder<T>);
  const V shifted = hn::MulAdd(x, hn::Set(d, T(1.44269504088896340736)), rounder), n = hn::Sub(shifted, rounder);
  const V r = hn::NegMulAdd(n, hn::Set(d, kLn2Low<T>), hn::NegMulAdd(n, hn::Set(d, kLn2High<T>), x));
  return {shifted, n, r};
}
// 2^(n + offset), for sums from -bias to bias + 1, which give 0 and infinity at the ends.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V power_of_two(D d, V shifted, int offset) {
  using T = hn::TFromD<D>;
  const hn::RebindToSigned<D> di;
  using I = hn::TFromD<decltype(di)>;
  constexpr I kBias = kIsFloat32<T> ? 127 : 1023;
  const auto bits = hn::Add(hn::BitCast(di, shifted), hn::Set(di, static_cast<I>(kBias + offset)));
  return hn::BitCast(d, hn::ShiftLeft<kFraction<T>>(bits));
}
// y 2^n for n of up to twice the range of exponents: in two factors, so that a subnormal result is rounded once.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V scale_wide(D d, V y, V n) {
  using T = hn::TFromD<D>;
  const V rounder = hn::Set(d, kRounder<T>);
  const V half = hn::Add(hn::Mul(n, hn::Set(d, T(0.5))), rounder);
  const V other = hn::Add(hn::Sub(n, hn::Sub(half, rounder)), rounder);
  return hn::Mul(hn::Mul(y, power_of_two(d, half, 0)), power_of_two(d, other, 0));
}

// The common end of exp and exp2: 2^n (1 + p) factor, where the result is ordinary in every lane, or else in full
// generality.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V scaled_exp(D d, const Reduced<V>& x, V factor, bool ordinary) {
  const V y = hn::MulAdd(expm1_of_rest(d, x.r), factor, factor);
  if (HWY_LIKELY(ordinary)) return hn::Mul(y, power_of_two(d, x.shifted, 0));
  return scale_wide(d, y, x.n);
}
// factor e^(x + rest), where the rest is a rounding error of x and the factor is of the size of 1.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp_of_sum(D d, V x, V rest, V factor) {
  using T = hn::TFromD<D>;
  const auto ordinary = hn::Le(hn::Abs(x), hn::Set(d, kIsFloat32<T> ? T(86) : T(707)));
  if (HWY_LIKELY(hn::AllTrue(d, ordinary))) {
    Reduced<V> p = reduce_exp(d, x);
    p.r = hn::Add(p.r, rest);
    return scaled_exp(d, p, factor, true);
  }
  const V low = hn::Set(d, kIsFloat32<T> ? T(-105) : T(-746)), high = hn::Set(d, kIsFloat32<T> ? T(89) : T(710));
  Reduced<V> p = reduce_exp(d, hn::Max(hn::Min(x, high), low));
  p.r = hn::Add(p.r, rest);
  return hn::IfThenElse(hn::Eq(x, x), scaled_exp(d, p, factor, false), x);
}
// (2^r - 1) / r
inline constexpr double kExp2Rest[] = {0.6931471880352003,   0.24022650760645808,   0.05550357071152507,
                                       0.009618082519990467, 0.0013390886332106697, 0.0001545318282995974};
// Five or six coefficients in steps that wait for each other less than Horner's.
template <class D, class V = hn::Vec<D>, size_t N>
HWY_INLINE V short_polynomial(D d, V x, const double (&coefficients)[N]) {
  const auto c = [&](size_t i) HWY_ATTR { return hn::Set(d, static_cast<float>(coefficients[i])); };
  const V q = hn::Mul(x, x), first = hn::MulAdd(x, c(1), c(0)), second = hn::MulAdd(x, c(3), c(2));
  V third = c(4);
  if constexpr (N == 6) third = hn::MulAdd(x, c(5), third);
  return hn::MulAdd(hn::MulAdd(third, q, second), q, first);
}
// 2^(n + r), where n lies in the low bits of `shifted`; |n| up to 126 and |r| to 1/2.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp2_of_parts(D d, V shifted, V r) {
  const hn::RebindToSigned<D> di;
  const V power = hn::MulAdd(r, short_polynomial(d, r, kExp2Rest), hn::Set(d, 1.0f));
  return hn::BitCast(d, hn::Add(hn::BitCast(di, power), hn::ShiftLeft<23>(hn::BitCast(di, shifted))));
}
struct VectorExp {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x) {
    return exp_of_sum(d, x, hn::Zero(d), hn::Set(d, hn::TFromD<D>(1)));
  }
};
struct VectorExp2 {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE Reduced<V> reduce(D d, V x) {
    using T = hn::TFromD<D>;
    const V rounder = hn::Set(d, kRounder<T>);
    const V shifted = hn::Add(x, rounder), n = hn::Sub(shifted, rounder);
    return {shifted, n, hn::Mul(hn::Sub(x, n), hn::Set(d, T(0.69314718055994530942)))};
  }
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x) {
    using T = hn::TFromD<D>;
    const V one = hn::Set(d, T(1));
    const auto ordinary = hn::Le(hn::Abs(x), hn::Set(d, kIsFloat32<T> ? T(125) : T(1021)));
    if (HWY_LIKELY(hn::AllTrue(d, ordinary))) return scaled_exp(d, reduce(d, x), one, true);
    const V low = hn::Set(d, kIsFloat32<T> ? T(-151) : T(-1076)), high = hn::Set(d, kIsFloat32<T> ? T(129) : T(1025));
    const V y = scaled_exp(d, reduce(d, hn::Max(hn::Min(x, high), low)), one, false);
    return hn::IfThenElse(hn::Eq(x, x), y, x);
  }
};

// e^x - 1 for x from -bias ln 2 to where it overflows; a NaN gives anything.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V expm1_ordinary(D d, V x) {
  using T = hn::TFromD<D>;
  const Reduced<V> p = reduce_exp(d, x);
  const V half = power_of_two(d, p.shifted, -1);  // halved, since 2^n may overflow where the result does not
  const V y = hn::MulAdd(half, expm1_of_rest(d, p.r), hn::Sub(half, hn::Set(d, T(0.5))));
  return hn::Add(y, y);
}
struct VectorExpm1 {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x) {
    using T = hn::TFromD<D>;
    const V low = hn::Set(d, kIsFloat32<T> ? T(-80) : T(-700)), high = hn::Set(d, kIsFloat32<T> ? T(89) : T(710));
    const V y = expm1_ordinary(d, hn::Max(hn::Min(x, high), low));
    return hn::IfThenElse(hn::Gt(hn::Abs(x), hn::Set(d, kTiny<T>)), y, x);  // a NaN stays, as do zeros
  }
};
struct VectorTanh {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x) {
    using T = hn::TFromD<D>;
    const V a = hn::Abs(x), limited = hn::Min(a, hn::Set(d, T(20)));
    const V e = expm1_ordinary(d, hn::Add(limited, limited));
    const V y = hn::Div(e, hn::Add(e, hn::Set(d, T(2))));
    return hn::IfThenElse(hn::Gt(a, hn::Set(d, kTiny<T>)), hn::CopySign(y, x), x);
  }
};

// sinh(n ln 2 + r) = (2^n - 2^-n) / 2 cosh r + (2^n + 2^-n) / 2 sinh r, and cosh in the same way, without cancellation.
inline constexpr double kSinhSingle[] = {0.16666666681704215, 0.00833331084464786256, 0.00019891080463998842};
inline constexpr double kSinhDouble[] = {0.166666666666666667,   0.00833333333333333401, 0.000198412698412632519,
                                         2.75573192473445095e-6, 2.5052070959803662e-8,  1.60866776667873615e-10};
inline constexpr double kCoshSingle[] = {0.0416666217002270959, 0.00139187734465532171};
inline constexpr double kCoshDouble[] = {0.0416666666666666667,  0.00138888888888888893, 0.0000248015873015831838,
                                         2.75573192385830426e-7, 2.08767335996979305e-9, 1.14880151491564106e-11};
template <class V>
struct Hyperbolic {
  V sinh, cosh;
};
// Halves of sinh a and cosh a, for 0 <= a.
template <class D, class V = hn::Vec<D>>
HWY_INLINE Hyperbolic<V> half_hyperbolic(D d, V a) {
  using T = hn::TFromD<D>;
  const Reduced<V> p = reduce_exp(d, hn::Min(a, hn::Set(d, kIsFloat32<T> ? T(89.5) : T(710.6))));
  const V rounder = hn::Set(d, kRounder<T>);
  const V up = power_of_two(d, p.shifted, -2);
  const V down = power_of_two(d, hn::Sub(rounder, hn::Min(p.n, hn::Set(d, T(80)))), -2);
  const V q = hn::Mul(p.r, p.r), difference = hn::Sub(up, down), sum = hn::Add(up, down);
  V sinh, cosh;
  if constexpr (kIsFloat32<T>) {
    sinh = polynomial(d, q, kSinhSingle), cosh = polynomial(d, q, kCoshSingle);
  } else {
    sinh = polynomial(d, q, kSinhDouble), cosh = polynomial(d, q, kCoshDouble);
  }
  sinh = hn::MulAdd(hn::Mul(p.r, q), sinh, p.r);
  cosh = hn::Add(hn::MulAdd(hn::Mul(q, q), cosh, hn::Mul(q, hn::Set(d, T(0.5)))), hn::Set(d, T(1)));
  return {hn::MulAdd(difference, cosh, hn::Mul(sum, sinh)), hn::MulAdd(sum, cosh, hn::Mul(difference, sinh))};
}
struct VectorSinh {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x) {
    using T = hn::TFromD<D>;
    const V a = hn::Abs(x), half = half_hyperbolic(d, a).sinh;
    return hn::IfThenElse(hn::Gt(a, hn::Set(d, kTiny<T>)), hn::CopySign(hn::Add(half, half), x), x);
  }
};
struct VectorCosh {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x) {
    const V half = half_hyperbolic(d, hn::Abs(x)).cosh;
    return hn::IfThenElse(hn::Eq(x, x), hn::Add(half, half), x);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();
#endif
