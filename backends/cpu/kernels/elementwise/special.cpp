// The error function and its kin: gaussian, erf, erfc, erfinv, lgamma.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/special.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <cmath>

#include "kernels/families.hpp"
#include "loops/elementwise.hpp"
#include "loops/inner_loops-inl.hpp"
#include "loops/vector_math-inl.hpp"
#include "simd/vector_trig-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {

// The C library's lgamma writes the sign to a global; this one is given its place.
struct LogGamma {
  static HWY_INLINE float call(float x) {
    int sign;
    return lgammaf_r(x, &sign);
  }
  static HWY_INLINE double call(double x) {
    int sign;
    return lgamma_r(x, &sign);
  }
};

// Stirling's series for lgamma: B(2k) / (2k (2k - 1)), in powers of 1 / w^2.
inline constexpr double kStirling[] = {1.0 / 12,   -1.0 / 360,      1.0 / 1260, -1.0 / 1680,
                                       1.0 / 1188, -691.0 / 360360, 1.0 / 156};
// In float64, for results in float32. Arguments below 8 are moved up by a product; those below 1/2 are reflected.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V lgamma_wide(D d, V x) {
  const V one = hn::Set(d, 1.0), half = hn::Set(d, 0.5), eight = hn::Set(d, 8.0);
  const auto mirrored = hn::Lt(x, half);
  const V z = hn::IfThenElse(mirrored, hn::Sub(one, x), x);
  const auto low = hn::Lt(z, eight);
  V product = z;
  for (double i = 1; i < 8; ++i) product = hn::Mul(product, hn::Add(z, hn::Set(d, i)));
  const V w = hn::IfThenElse(low, hn::Add(z, eight), z), u = hn::Div(one, w);
  const V series = hn::Mul(u, polynomial(d, hn::Mul(u, u), kStirling));
  const V large = hn::Sub(hn::Mul(hn::Sub(w, half), VectorLog::call(d, w)), w);
  V y = hn::Add(large, hn::Add(series, hn::Set(d, 0.91893853320467274178)));
  y = hn::Sub(y, VectorLog::call(d, hn::IfThenElse(low, product, one)));
  if (!hn::AllFalse(d, mirrored)) {
    const V pi = hn::Set(d, 3.14159265358979323846);
    const V sine = VectorSin::call(d, hn::Mul(pi, hn::Sub(x, hn::Round(x))));
    y = hn::IfThenElse(mirrored, hn::Sub(VectorLog::call(d, hn::Div(pi, hn::Abs(sine))), y), y);
  }
  y = hn::IfThenZeroElse(hn::Or(hn::Eq(x, one), hn::Eq(x, hn::Set(d, 2.0))), y);
  const V infinity = hn::Set(d, std::numeric_limits<double>::infinity());
  return hn::IfThenElse(hn::Eq(hn::Abs(x), infinity), infinity, y);
}
struct VectorLogGamma {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x) {
#if HWY_TARGET == HWY_SCALAR
    return by_library(d, x, [](float v) { return LogGamma::call(v); });
#else
    const hn::Repartition<double, D> dw;
    const hn::Half<D> dh;
    const auto low = lgamma_wide(dw, hn::PromoteTo(dw, hn::LowerHalf(dh, x)));
    const auto high = lgamma_wide(dw, hn::PromoteTo(dw, hn::UpperHalf(dh, x)));
    return hn::Combine(d, hn::DemoteTo(dh, high), hn::DemoteTo(dh, low));
#endif
  }
};

void fill_lgamma(Elementwise& t) {
  t.inner[BP_FLOAT32] = vector_loop<VectorLogGamma, float>;
  t.inner[BP_FLOAT64] = unary_loop<LogGamma, double>;
  t.grain = kCostlyGrain;
}

// exp(-rate x^2)
struct VectorGaussian {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x, V rate) {
    using T = hn::TFromD<D>;
    const V a = hn::Abs(x), limit = hn::Div(hn::Set(d, T(64)), hn::Sqrt(rate));  // there the result is 0
    const V limited = hn::IfThenElse(hn::Gt(a, limit), limit, a), square = hn::Mul(limited, limited);
    const V minus = hn::Neg(rate), lost = lost_by_square(d, limited, square);
    return exp_of_sum(d, hn::Mul(square, minus), hn::Mul(lost, minus), hn::Set(d, T(1)));
  }
};

std::span<ElementwiseRow> special_rows() {
  static ElementwiseRow rows[] = {
      {"bp::gaussian", elementwise_with_scalars<1, 1>, {fill_fused<VectorGaussian, 1, 1, kCostlyGrain>}},
      {"bp::erf", elementwise_unary, {fill_vector<VectorErf>}},
      {"bp::erfc", elementwise_unary, {fill_vector<VectorErfc>}},
      {"bp::erfinv", elementwise_unary, {fill_vector<VectorErfinv>}},
      {"bp::lgamma", elementwise_unary, {fill_lgamma}},
  };
  return rows;
}

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::cpu {
HWY_EXPORT(special_rows);

const Family kSpecial([](const Registrar& registrar) {
  register_elementwise(registrar, HWY_DYNAMIC_DISPATCH(special_rows)(), __FILE__, __LINE__);
});

}  // namespace backplane::cpu
#endif
