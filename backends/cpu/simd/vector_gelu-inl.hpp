// gelu on vectors of float32 and float64; included once per Highway target.
#if defined(BACKPLANE_CPU_VECTOR_GELU) == defined(HWY_TARGET_TOGGLE)
#ifdef BACKPLANE_CPU_VECTOR_GELU
#undef BACKPLANE_CPU_VECTOR_GELU
#else
#define BACKPLANE_CPU_VECTOR_GELU
#endif

#include <limits>

#include "simd/vector_erf-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// log2(erfc(a / sqrt 2)) / a for a up to 5.9, a least squares fit weighted by erfc. Arguments beyond
// take all digits of the tail.
inline constexpr double kGeluRest[] = {-1.151104193,    -0.4592230131,    -0.05242476304,  0.006901986284,
                                       6.039393897e-05, -0.0003252677062, 9.697873691e-05, -1.657613695e-05,
                                       1.770487463e-06, -1.097746893e-07, 3.019842149e-09};
// 2^e, for e from -126 up.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp2_of_ordinary(D d, V e) {
  const V rounder = hn::Set(d, kRounder<float>), shifted = hn::Add(e, rounder);
  return exp2_of_parts(d, shifted, hn::Sub(e, hn::Sub(shifted, rounder)));
}
// erfc(a / sqrt 2) / 2 of float32, for a from 0 up; beyond kGeluLimit its value at kGeluLimit.
inline constexpr float kGeluLimit = 5.9f;
template <class D, class V = hn::Vec<D>>
HWY_INLINE V normal_tail(D d, V a) {
  const V limited = hn::Min(a, hn::Set(d, kGeluLimit));
  return exp2_of_ordinary(d, hn::MulAdd(limited, polynomial(d, limited, kGeluRest), hn::Set(d, -1.0f)));
}
// factor exp(-a^2 / 2), for a from 0 to kNormalLimit.
inline constexpr double kNormalLimit = 40;
template <class D, class V = hn::Vec<D>>
HWY_INLINE V density_exponential(D d, V a, V factor) {
  const V square = hn::Mul(a, a), minus_half = hn::Set(d, hn::TFromD<D>(-0.5));
  return exp_of_sum(d, hn::Mul(square, minus_half), hn::Mul(lost_by_square(d, a, square), minus_half), factor);
}
// erfc(a / sqrt 2) / 2 for a from 0 up, with all digits of the tail.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V normal_tail_exactly(D d, V a) {
  using T = hn::TFromD<D>;
  const V limited = hn::Min(a, hn::Set(d, T(kNormalLimit))),
          b = hn::Mul(limited, hn::Set(d, T(0.70710678118654752440)));
  const V slope = hn::Add(hn::Add(b, b), hn::Set(d, T(1)));
  const V p = hn::Mul(erfc_fit(d, b), hn::Set(d, T(0.5)));
  return hn::Div(density_exponential(d, limited, p), slope);
}
struct VectorGelu {
  template <class D, class V = hn::Vec<D>>
  static HWY_NOINLINE V general(D d, V x) {
    using T = hn::TFromD<D>;
    const V a = hn::Abs(x), tail = hn::Mul(finite_below(d, x), normal_tail_exactly(d, a));
    const auto above = hn::Gt(x, hn::Zero(d)), infinite = hn::Eq(a, hn::Set(d, std::numeric_limits<T>::infinity()));
    const V y = hn::IfThenElse(above, hn::Sub(x, tail), tail);
    const V ends = hn::IfThenElse(above, x, hn::Zero(d));
    return hn::IfThenElse(hn::Eq(x, x), hn::IfThenElse(infinite, ends, y), x);
  }
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x) {
    using T = hn::TFromD<D>;
    if constexpr (kIsFloat32<T>) {
      if (HWY_UNLIKELY(!hn::AllFalse(d, hn::Lt(x, hn::Set(d, -kGeluLimit))))) return general(d, x);
      // x / 2 erfc(|x| / sqrt 2) is the result of a negative x, and what a positive one lacks.
      const V a = hn::Abs(x);
      const V tail = hn::IfThenZeroElse(hn::Gt(a, hn::Set(d, kGeluLimit)), hn::Mul(x, normal_tail(d, a)));
      return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), hn::Sub(x, tail), tail);
    } else {
      return general(d, x);
    }
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();
#endif
