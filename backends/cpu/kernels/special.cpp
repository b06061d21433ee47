// The error function and its kin: erf, erfc, erfinv, lgamma.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/special.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <cmath>
#include <iterator>

#include "kernels/elementwise.hpp"
#include "kernels/families.hpp"
#include "kernels/inner_loops-inl.hpp"
#include "kernels/vector_math-inl.hpp"

#ifndef BACKPLANE_CPU_SPECIAL
#define BACKPLANE_CPU_SPECIAL
namespace backplane::cpu {
struct Special {
  Elementwise erf{}, erfc{}, erfinv{}, lgamma{};
};
}  // namespace backplane::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {

// The C library's lgamma writes the sign to a global; this one is told where.
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

void fill_special(Special& t) {
  fill_vector<VectorErf>(t.erf);
  fill_vector<VectorErfc>(t.erfc);
  fill_vector<VectorErfinv>(t.erfinv);
  fill_unary_floats<LogGamma>(t.lgamma);
  t.lgamma.grain = kCostlyGrain;
}

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::cpu {
HWY_EXPORT(fill_special);

void register_special(const Registrar& registrar) {
  static Special t;
  HWY_DYNAMIC_DISPATCH(fill_special)(t);
  const ElementwiseRow rows[] = {
      {"bp::erf", &t.erf, elementwise_unary},
      {"bp::erfc", &t.erfc, elementwise_unary},
      {"bp::erfinv", &t.erfinv, elementwise_unary},
      {"bp::lgamma", &t.lgamma, elementwise_unary},
  };
  register_rows(registrar, rows, std::size(rows), __FILE__, __LINE__);
}

}  // namespace backplane::cpu
#endif
