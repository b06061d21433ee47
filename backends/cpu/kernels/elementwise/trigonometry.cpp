// sin, cos, tan and their inverses. Complex types are computed by the C library.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/trigonometry.cpp"
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

BACKPLANE_FUNCTION(Sin, std::sin(x))
BACKPLANE_FUNCTION(Cos, std::cos(x))
BACKPLANE_FUNCTION(Tan, std::tan(x))
BACKPLANE_FUNCTION(Asin, std::asin(x))
BACKPLANE_FUNCTION(Acos, std::acos(x))
BACKPLANE_FUNCTION(Atan, std::atan(x))

std::span<ElementwiseRow> trigonometry_rows() {
  static ElementwiseRow rows[] = {
      {"bp::sin", elementwise_unary, {fill_vector_and_complex<VectorSin, Sin>}},
      {"bp::cos", elementwise_unary, {fill_vector_and_complex<VectorCos, Cos>}},
      {"bp::tan", elementwise_unary, {fill_vector_and_complex<VectorTan, Tan>}},
      {"bp::asin", elementwise_unary, {fill_vector_and_complex<VectorAsin, Asin>}},
      {"bp::acos", elementwise_unary, {fill_vector_and_complex<VectorAcos, Acos>}},
      {"bp::atan", elementwise_unary, {fill_vector_and_complex<VectorAtan, Atan>}},
  };
  return rows;
}

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::cpu {
HWY_EXPORT(trigonometry_rows);

const Family kTrigonometry([](const Registrar& registrar) {
  register_elementwise(registrar, HWY_DYNAMIC_DISPATCH(trigonometry_rows)(), __FILE__, __LINE__);
});

}  // namespace backplane::cpu
#endif
