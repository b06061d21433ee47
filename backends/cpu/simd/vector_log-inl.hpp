// log, log2, log10, log1p, asinh, acosh and atanh on vectors of float32 and float64; included once per Highway target.
//
// An argument is 2^k m with m in [sqrt(1/2), sqrt(2)), and log(m) is a polynomial in f = m - 1 (float32) or in
// s = f / (2 + f) (float64), both fitted at Chebyshev nodes. Errors of the functions: docs/reference/accuracy.md.
#if defined(BACKPLANE_CPU_VECTOR_LOG) == defined(HWY_TARGET_TOGGLE)
#ifdef BACKPLANE_CPU_VECTOR_LOG
#undef BACKPLANE_CPU_VECTOR_LOG
#else
#define BACKPLANE_CPU_VECTOR_LOG
#endif

#include "simd/vector_exp-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class V>
struct LogParts {
  V k, f;
};
// x = 2^k (1 + f), for normal positive x.
template <class D, class V = hn::Vec<D>>
HWY_INLINE LogParts<V> reduce_log(D d, V x) {
  using T = hn::TFromD<D>;
  const hn::RebindToUnsigned<D> du;
  using U = hn::TFromD<decltype(du)>;
  constexpr U kRootHalf = static_cast<U>(kIsFloat32<T> ? 0x3f3504f3 : 0x3fe6a09e667f3bcd);
  constexpr U kOne = static_cast<U>(kIsFloat32<T> ? 0x3f800000 : 0x3ff0000000000000);
  constexpr U kMask = (U{1} << kFraction<T>)-1;
  // 2^fraction in floating point: an integer below it, put in its low bits, is converted by a subtraction.
  constexpr T kAnchor = kIsFloat32<T> ? T(8388608) : T(4503599627370496);
  constexpr U kAnchorBits = static_cast<U>(kIsFloat32<T> ? 0x4b000000 : 0x4330000000000000);
  constexpr T kBias = kIsFloat32<T> ? T(127) : T(1023);
  const auto bits = hn::Add(hn::BitCast(du, x), hn::Set(du, static_cast<U>(kOne - kRootHalf)));
  const auto exponent = hn::Or(hn::ShiftRight<kFraction<T>>(bits), hn::Set(du, kAnchorBits));
  const auto m = hn::Add(hn::And(bits, hn::Set(du, kMask)), hn::Set(du, kRootHalf));
  return {hn::Sub(hn::BitCast(d, exponent), hn::Set(d, kAnchor + kBias)), hn::Sub(hn::BitCast(d, m), hn::Set(d, T(1)))};
}

inline constexpr double kLogSingle[] = {0.333333311800300481,  -0.24999996957950882,  0.200007157488921017,
                                        -0.166678023195012541, 0.142490576456974804,  -0.124256873314511061,
                                        0.116854199234867393,  -0.114797338466376356, 0.0697161147145117783};
inline constexpr double kLogDouble[] = {0.666666666666666973, 0.399999999998982734, 0.285714286265333359,
                                        0.222222110438224861, 0.181828957468014286, 0.153315017212074187,
                                        0.146191647771864199};
// f - log(1 + f) as a small number, so that the callers add the large ones last.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V log_rest(D d, V f) {
  using T = hn::TFromD<D>;
  if constexpr (kIsFloat32<T>) {
    const V q = hn::Mul(f, f);
    return hn::NegMulAdd(hn::Mul(q, f), polynomial(d, f, kLogSingle), hn::Mul(q, hn::Set(d, T(0.5))));
  } else {
    const V s = hn::Div(f, hn::Add(f, hn::Set(d, T(2)))), z = hn::Mul(s, s);
    return hn::Mul(s, hn::NegMulAdd(z, polynomial(d, z, kLogDouble), f));
  }
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE V join_log(D d, const LogParts<V>& p) {
  using T = hn::TFromD<D>;
  const V rest = hn::NegMulAdd(p.k, hn::Set(d, kLn2Low<T>), log_rest(d, p.f));
  return hn::MulAdd(p.k, hn::Set(d, kLn2High<T>), hn::Sub(p.f, rest));
}
struct JoinNatural {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, const LogParts<V>& p) {
    return join_log(d, p);
  }
};
struct JoinBinary {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, const LogParts<V>& p) {
    using T = hn::TFromD<D>;
    return hn::MulAdd(hn::Sub(p.f, log_rest(d, p.f)), hn::Set(d, T(1.44269504088896340736)), p.k);
  }
};
struct JoinDecimal {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, const LogParts<V>& p) {
    using T = hn::TFromD<D>;
    const V high = hn::Set(d, kIsFloat32<T> ? T(0.30103302001953125) : T(0.30102999566395283182));
    const V low = hn::Set(d, kIsFloat32<T> ? T(-3.0243555500547862611e-6) : T(2.8363394551044964437e-14));
    const V m = hn::Mul(hn::Sub(p.f, log_rest(d, p.f)), hn::Set(d, T(0.43429448190325182765)));
    return hn::MulAdd(p.k, high, hn::MulAdd(p.k, low, m));
  }
};

// y is the logarithm of `argument`, computed for positive ones.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V with_special_values(D d, V argument, V y) {
  using T = hn::TFromD<D>;
  const V infinity = hn::Set(d, std::numeric_limits<T>::infinity()), zero = hn::Zero(d);
  V result = hn::IfThenElse(hn::Eq(argument, zero), hn::Neg(infinity), y);
  result = hn::IfThenElse(hn::Eq(argument, infinity), infinity, result);
  return hn::IfThenElse(hn::Ge(argument, zero), result, hn::Set(d, std::numeric_limits<T>::quiet_NaN()));
}
template <class Join>
struct Logarithm {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x) {
    using T = hn::TFromD<D>;
    const V least = hn::Set(d, std::numeric_limits<T>::min()), most = hn::Set(d, std::numeric_limits<T>::max());
    if (HWY_LIKELY(hn::AllTrue(d, hn::And(hn::Ge(x, least), hn::Le(x, most))))) return Join::call(d, reduce_log(d, x));
    constexpr T kUp = kIsFloat32<T> ? T(8388608) : T(4503599627370496);
    const auto subnormal = hn::Lt(x, least);
    LogParts<V> p = reduce_log(d, hn::IfThenElse(subnormal, hn::Mul(x, hn::Set(d, kUp)), x));
    p.k = hn::IfThenElse(subnormal, hn::Sub(p.k, hn::Set(d, T(kFraction<T>))), p.k);
    return with_special_values(d, x, Join::call(d, p));
  }
};
using VectorLog = Logarithm<JoinNatural>;
using VectorLog2 = Logarithm<JoinBinary>;
using VectorLog10 = Logarithm<JoinDecimal>;

// log(1 + x) for finite x > -1: what 1 + x rounds off joins f.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V log1p_ordinary(D d, V x) {
  using T = hn::TFromD<D>;
  const V one = hn::Set(d, T(1)), u = hn::Add(x, one), b = hn::Sub(u, one);
  const V lost = hn::Add(hn::Sub(one, hn::Sub(u, b)), hn::Sub(x, b));
  LogParts<V> p = reduce_log(d, u);
  const V down = power_of_two(d, hn::Sub(hn::Set(d, kRounder<T>), hn::Min(p.k, hn::Set(d, T(100)))), 0);
  p.f = hn::MulAdd(lost, down, p.f);
  return join_log(d, p);
}
struct VectorLog1p {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x) {
    using T = hn::TFromD<D>;
    const V one = hn::Set(d, T(1)), most = hn::Set(d, std::numeric_limits<T>::max());
    V y = log1p_ordinary(d, x);
    if (HWY_UNLIKELY(!hn::AllTrue(d, hn::And(hn::Gt(x, hn::Neg(one)), hn::Le(x, most)))))
      y = with_special_values(d, hn::Add(x, one), y);
    return hn::IfThenElse(hn::Le(hn::Abs(x), hn::Set(d, kTiny<T>)), x, y);
  }
};

// Above `large` the square overflows or adds nothing, and log(2 a) is the answer.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V log1p_or_log2x(D d, V z, V a) {
  using T = hn::TFromD<D>;
  const auto large = hn::Gt(a, hn::Set(d, kIsFloat32<T> ? T(1e9) : T(1e17)));
  const V y = log1p_ordinary(d, hn::IfThenElse(large, a, z));
  return hn::Add(y, hn::IfThenElseZero(large, hn::Set(d, T(0.69314718055994530942))));
}
struct VectorAsinh {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x) {
    using T = hn::TFromD<D>;
    const V one = hn::Set(d, T(1)), a = hn::Abs(x), q = hn::Mul(a, a);
    const V z = hn::Add(a, hn::Div(q, hn::Add(hn::Sqrt(hn::Add(q, one)), one)));
    const V y = hn::CopySign(log1p_or_log2x(d, z, a), x);
    const auto between = hn::And(hn::Gt(a, hn::Set(d, kTiny<T>)), hn::Le(a, hn::Set(d, std::numeric_limits<T>::max())));
    return hn::IfThenElse(between, y, x);
  }
};
struct VectorAcosh {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x) {
    using T = hn::TFromD<D>;
    const V one = hn::Set(d, T(1)), t = hn::Sub(x, one), infinity = hn::Set(d, std::numeric_limits<T>::infinity());
    const V y = log1p_or_log2x(d, hn::Add(t, hn::Sqrt(hn::Mul(t, hn::Add(x, one)))), x);
    const V outside = hn::IfThenElse(hn::Eq(x, infinity), x, hn::Set(d, std::numeric_limits<T>::quiet_NaN()));
    return hn::IfThenElse(hn::And(hn::Ge(x, one), hn::Lt(x, infinity)), y, outside);
  }
};
struct VectorAtanh {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x) {
    using T = hn::TFromD<D>;
    const V one = hn::Set(d, T(1)), half = hn::Set(d, T(0.5)), a = hn::Abs(x);
    const V y = hn::Mul(log1p_ordinary(d, hn::Div(hn::Add(a, a), hn::Sub(one, a))), half);
    const V edge = hn::IfThenElse(hn::Eq(a, one), hn::Set(d, std::numeric_limits<T>::infinity()),
                                  hn::Set(d, std::numeric_limits<T>::quiet_NaN()));
    const V found = hn::CopySign(hn::IfThenElse(hn::Lt(a, one), y, edge), x);
    return hn::IfThenElse(hn::Gt(a, hn::Set(d, kTiny<T>)), found, x);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();
#endif
