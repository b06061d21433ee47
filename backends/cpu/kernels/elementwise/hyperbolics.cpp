// sinh, cosh, tanh and their inverses. Complex types are computed by the C library.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/hyperbolics.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <cmath>
#include <iterator>

#include "kernels/families.hpp"
#include "loops/elementwise.hpp"
#include "loops/inner_loops-inl.hpp"
#include "simd/vector_math-inl.hpp"

#ifndef BACKPLANE_CPU_HYPERBOLICS
#define BACKPLANE_CPU_HYPERBOLICS
namespace backplane::cpu {
struct Hyperbolics {
  Elementwise sinh{}, cosh{}, tanh{}, asinh{}, acosh{}, atanh{};
};
}  // namespace backplane::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {

struct Sinh {
  template <class T>
  static HWY_INLINE T call(T x) {
    return std::sinh(x);
  }
};
struct Cosh {
  template <class T>
  static HWY_INLINE T call(T x) {
    return std::cosh(x);
  }
};
// At infinity the array API has an imaginary zero of the sign of z's, where C takes that of its doubled sine.
struct ComplexTanh {
  template <class T>
  static HWY_INLINE std::complex<T> call(std::complex<T> z) {
    if (std::isinf(z.real()) && std::isfinite(z.imag()))
      return {std::copysign(T(1), z.real()), std::copysign(T(0), z.imag())};
    return std::tanh(z);
  }
};
struct Asinh {
  template <class T>
  static HWY_INLINE T call(T x) {
    return std::asinh(x);
  }
};
struct Acosh {
  template <class T>
  static HWY_INLINE T call(T x) {
    return std::acosh(x);
  }
};
struct Atanh {
  template <class T>
  static HWY_INLINE T call(T x) {
    return std::atanh(x);
  }
};

void fill_hyperbolics(Hyperbolics& t) {
  fill_vector_and_complex<VectorSinh, Sinh>(t.sinh);
  fill_vector_and_complex<VectorCosh, Cosh>(t.cosh);
  fill_vector_and_complex<VectorTanh, ComplexTanh>(t.tanh);
  fill_vector_and_complex<VectorAsinh, Asinh>(t.asinh);
  fill_vector_and_complex<VectorAcosh, Acosh>(t.acosh);
  fill_vector_and_complex<VectorAtanh, Atanh>(t.atanh);
}

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::cpu {
HWY_EXPORT(fill_hyperbolics);

void register_hyperbolics(const Registrar& registrar) {
  static Hyperbolics t;
  HWY_DYNAMIC_DISPATCH(fill_hyperbolics)(t);
  const ElementwiseRow rows[] = {
      {"bp::sinh", &t.sinh, elementwise_unary},   {"bp::cosh", &t.cosh, elementwise_unary},
      {"bp::tanh", &t.tanh, elementwise_unary},   {"bp::asinh", &t.asinh, elementwise_unary},
      {"bp::acosh", &t.acosh, elementwise_unary}, {"bp::atanh", &t.atanh, elementwise_unary},
  };
  register_rows(registrar, rows, std::size(rows), __FILE__, __LINE__);
}

}  // namespace backplane::cpu
#endif
