// sin, cos, tan, their inverses and atan2 on vectors of float32 and float64; included once per Highway target.
//
// Highway has most of them; tan and atan2 are ours. Errors of the functions: docs/reference/accuracy.md.
#if defined(BACKPLANE_CPU_VECTOR_TRIG) == defined(HWY_TARGET_TOGGLE)
#ifdef BACKPLANE_CPU_VECTOR_TRIG
#undef BACKPLANE_CPU_VECTOR_TRIG
#else
#define BACKPLANE_CPU_VECTOR_TRIG
#endif

#include "hwy/contrib/math/math-inl.h"
#include "simd/vector_exp-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Beyond this magnitude the reduction by multiples of pi loses digits: such a vector goes to the C library.
template <class D, class V = hn::Vec<D>>
HWY_INLINE bool within_reduction(D d, V x) {
  return hn::AllTrue(d, hn::Le(hn::Abs(x), hn::Set(d, hn::TFromD<D>(30000))));
}
struct VectorSin {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x) {
    using T = hn::TFromD<D>;
    if (HWY_UNLIKELY(!within_reduction(d, x))) return by_library(d, x, static_cast<T (*)(T)>(std::sin));
    return hn::IfThenElse(hn::Gt(hn::Abs(x), hn::Set(d, kTiny<T>)), hn::Sin(d, x), x);
  }
};
struct VectorCos {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x) {
    using T = hn::TFromD<D>;
    if (HWY_UNLIKELY(!within_reduction(d, x))) return by_library(d, x, static_cast<T (*)(T)>(std::cos));
    // Below the limit 1 is the nearest number; Highway's is one unit below it, at 0 too.
    const V limit = hn::Set(d, kIsFloat32<T> ? T(2.4e-4) : T(1.05e-8));
    return hn::IfThenElse(hn::Lt(hn::Abs(x), limit), hn::Set(d, T(1)), hn::Cos(d, x));
  }
};

inline constexpr double kSinSingle[] = {-0.16666664650292082, 0.00833274593638042232, -0.000195873870684644565};
inline constexpr double kSinDouble[] = {-0.166666666666666667,   0.00833333333333333147,  -0.00019841269841265017,
                                        2.75573192193019187e-6,  -2.50521062195218942e-8, 1.60585295722678764e-10,
                                        -7.58657658817107246e-13};
inline constexpr double kCosSingle[] = {0.0416666646474573772, -0.00138883006969038989, 0.0000245474372101931988};
inline constexpr double kCosDouble[] = {0.0416666666666666667,   -0.00138888888888888879, 0.0000248015873015846198,
                                        -2.75573192213821156e-7, 2.08767557838940384e-9,  -1.14704597496756061e-11,
                                        4.74580488976067417e-14};
struct VectorTan {
  // x = n pi / 2 + r by three parts of pi / 2. The first is subtracted without rounding (with FMA).
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x) {
    using T = hn::TFromD<D>;
    if (HWY_UNLIKELY(!HWY_NATIVE_FMA || !within_reduction(d, x)))
      return by_library(d, x, static_cast<T (*)(T)>(std::tan));
    constexpr bool kSingle = kIsFloat32<T>;
    const V rounder = hn::Set(d, kRounder<T>);
    const V shifted = hn::MulAdd(x, hn::Set(d, T(0.63661977236758134308)), rounder), n = hn::Sub(shifted, rounder);
    V r = hn::NegMulAdd(n, hn::Set(d, kSingle ? T(1.5707963705062866211) : T(1.570796326794896558)), x);
    r = hn::NegMulAdd(n, hn::Set(d, kSingle ? T(-4.3711388286737928865e-8) : T(6.1232339957367660359e-17)), r);
    r = hn::NegMulAdd(n, hn::Set(d, kSingle ? T(-1.7151244994428828058e-15) : T(-1.4973849048591697773e-33)), r);
    const V q = hn::Mul(r, r);
    V sin, cos;
    if constexpr (kSingle) {
      sin = polynomial(d, q, kSinSingle), cos = polynomial(d, q, kCosSingle);
    } else {
      sin = polynomial(d, q, kSinDouble), cos = polynomial(d, q, kCosDouble);
    }
    sin = hn::MulAdd(hn::Mul(r, q), sin, r);
    cos = hn::Add(hn::MulAdd(hn::Mul(q, q), cos, hn::Mul(q, hn::Set(d, T(-0.5)))), hn::Set(d, T(1)));
    const hn::RebindToSigned<D> di;
    const auto odd = hn::ShiftLeft<sizeof(T) * 8 - 1>(hn::BitCast(di, shifted));  // the sign bit where n is odd
    const auto swap = hn::MaskFromVec(hn::BitCast(d, hn::BroadcastSignBit(odd)));
    const V y = hn::Div(hn::IfThenElse(swap, cos, sin), hn::IfThenElse(swap, sin, cos));
    return hn::IfThenElse(hn::Gt(hn::Abs(x), hn::Set(d, kTiny<T>)), hn::Xor(y, hn::BitCast(d, odd)), x);
  }
};

struct VectorAsin {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x) {
    return hn::Asin(d, x);
  }
};
struct VectorAcos {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x) {
    return hn::Acos(d, x);
  }
};
struct VectorAtan {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x) {
    return hn::Atan(d, x);
  }
};
// By the quotient of the smaller and the larger magnitude; then mirrored at the diagonal and at the axes.
struct VectorAtan2 {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V y, V x) {
    using T = hn::TFromD<D>;
    const V a = hn::Abs(y), b = hn::Abs(x), zero = hn::Zero(d);
    const V larger = hn::Max(a, b), smaller = hn::Min(a, b);
    // 0 / 0 is 0 here, and inf / inf is 1.
    V q = hn::Div(smaller, hn::IfThenElse(hn::Eq(larger, zero), hn::Set(d, T(1)), larger));
    q = hn::IfThenElse(hn::Eq(smaller, hn::Set(d, std::numeric_limits<T>::infinity())), hn::Set(d, T(1)), q);
    hn::impl::AtanImpl<T> impl;
    V t = impl.AtanPoly(d, q);
    const V quarter = hn::Set(d, T(1.57079632679489661923)), half = hn::Set(d, T(3.14159265358979323846));
    const V rest = hn::Set(d, kIsFloat32<T> ? T(-4.3711388286737928865e-8) : T(6.1232339957367660359e-17));
    t = hn::IfThenElse(hn::Gt(a, b), hn::Add(hn::Sub(quarter, t), rest), t);
    t = hn::IfThenElse(hn::Lt(hn::CopySign(hn::Set(d, T(1)), x), zero), hn::Add(hn::Sub(half, t), hn::Add(rest, rest)),
                       t);
    const auto ordered = hn::And(hn::Eq(x, x), hn::Eq(y, y));
    return hn::IfThenElse(ordered, hn::CopySign(t, y), hn::Add(x, y));
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();
#endif
