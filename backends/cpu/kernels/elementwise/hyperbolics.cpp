// sinh, cosh, tanh and their inverses. Complex types are computed by the C library.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/hyperbolics.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <cmath>

#include "kernels/families.hpp"
#include "loops/elementwise.hpp"
#include "loops/inner_loops-inl.hpp"
#include "loops/vector_math-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {

BACKPLANE_FUNCTION(Sinh, std::sinh(x))
BACKPLANE_FUNCTION(Cosh, std::cosh(x))
// At infinity the array API has an imaginary zero with the sign of z's, where C takes the sign of its doubled sine.
struct ComplexTanh {
  template <class T>
  static HWY_INLINE std::complex<T> call(std::complex<T> z) {
    if (std::isinf(z.real()) && std::isfinite(z.imag()))
      return {std::copysign(T(1), z.real()), std::copysign(T(0), z.imag())};
    return std::tanh(z);
  }
};
BACKPLANE_FUNCTION(Asinh, std::asinh(x))
BACKPLANE_FUNCTION(Acosh, std::acosh(x))
BACKPLANE_FUNCTION(Atanh, std::atanh(x))

std::span<ElementwiseRow> hyperbolics_rows() {
  static ElementwiseRow rows[] = {
      {"bp::sinh", elementwise_unary, {fill_vector_and_complex<VectorSinh, Sinh>}},
      {"bp::cosh", elementwise_unary, {fill_vector_and_complex<VectorCosh, Cosh>}},
      {"bp::tanh", elementwise_unary, {fill_vector_and_complex<VectorTanh, ComplexTanh>}},
      {"bp::asinh", elementwise_unary, {fill_vector_and_complex<VectorAsinh, Asinh>}},
      {"bp::acosh", elementwise_unary, {fill_vector_and_complex<VectorAcosh, Acosh>}},
      {"bp::atanh", elementwise_unary, {fill_vector_and_complex<VectorAtanh, Atanh>}},
  };
  return rows;
}

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::cpu {
HWY_EXPORT(hyperbolics_rows);

const Family kHyperbolics([](const Registrar& registrar) {
  register_elementwise(registrar, HWY_DYNAMIC_DISPATCH(hyperbolics_rows)(), __FILE__, __LINE__);
});

}  // namespace backplane::cpu
#endif
