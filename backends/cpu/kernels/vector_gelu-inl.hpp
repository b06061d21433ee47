// gelu on vectors of float32 and float64; included once per Highway target.
#if defined(BACKPLANE_CPU_VECTOR_GELU) == defined(HWY_TARGET_TOGGLE)
#ifdef BACKPLANE_CPU_VECTOR_GELU
#undef BACKPLANE_CPU_VECTOR_GELU
#else
#define BACKPLANE_CPU_VECTOR_GELU
#endif

#include <limits>

#include "kernels/exp_down-inl.hpp"
#include "kernels/vector_erf-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// -log(erfc(a / sqrt 2)) / a for a up to 5.9, a least squares fit weighted by erfc. Below -5.9 the result is 0 to
// within 2e-8.
inline constexpr double kGeluRest[] = {0.7978846257,    0.3183091368,    0.03633807669,   -0.004784092333,
                                       -4.186188852e-5, 0.0002254583935, -6.722053806e-5, 1.148970259e-5,
                                       -1.227208393e-6, 7.609001641e-8,  -2.093195071e-9};
struct VectorGelu {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x) {
    using T = hn::TFromD<D>;
    if constexpr (kIsFloat32<T>) {
      // x / 2 erfc(|x| / sqrt 2) is the result of a negative x, and what a positive one lacks.
      const V a = hn::Abs(x), limit = hn::Set(d, 5.9f), limited = hn::Min(a, limit);
      const V e = exp_down(d, hn::Neg(hn::Mul(limited, polynomial(d, limited, kGeluRest))));
      const V tail = hn::IfThenZeroElse(hn::Gt(a, limit), hn::Mul(hn::Mul(x, hn::Set(d, 0.5f)), e));
      return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), hn::Sub(x, tail), tail);
    } else {
      const V one = hn::Set(d, T(1));
      const V erf = VectorErf::call(d, hn::Mul(x, hn::Set(d, T(0.70710678118654752440))));
      const V finite = hn::Max(x, hn::Set(d, -std::numeric_limits<T>::max()));  // at -inf the other factor is 0
      return hn::Mul(hn::Mul(hn::Set(d, T(0.5)), finite), hn::Add(one, erf));
    }
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();
#endif
