// sin, cos, tan and their inverses. Complex types are computed by the C library.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/trigonometry.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <cmath>
#include <iterator>

#include "kernels/families.hpp"
#include "loops/elementwise.hpp"
#include "loops/inner_loops-inl.hpp"
#include "simd/vector_math-inl.hpp"
#include "simd/vector_trig-inl.hpp"

#ifndef BACKPLANE_CPU_TRIGONOMETRY
#define BACKPLANE_CPU_TRIGONOMETRY
namespace backplane::cpu {
struct Trigonometry {
  Elementwise sin{}, cos{}, tan{}, asin{}, acos{}, atan{};
};
}  // namespace backplane::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {

struct Sin {
  template <class T>
  static HWY_INLINE T call(T x) {
    return std::sin(x);
  }
};
struct Cos {
  template <class T>
  static HWY_INLINE T call(T x) {
    return std::cos(x);
  }
};
struct Tan {
  template <class T>
  static HWY_INLINE T call(T x) {
    return std::tan(x);
  }
};
struct Asin {
  template <class T>
  static HWY_INLINE T call(T x) {
    return std::asin(x);
  }
};
struct Acos {
  template <class T>
  static HWY_INLINE T call(T x) {
    return std::acos(x);
  }
};
struct Atan {
  template <class T>
  static HWY_INLINE T call(T x) {
    return std::atan(x);
  }
};

void fill_trigonometry(Trigonometry& t) {
  fill_vector_and_complex<VectorSin, Sin>(t.sin);
  fill_vector_and_complex<VectorCos, Cos>(t.cos);
  fill_vector_and_complex<VectorTan, Tan>(t.tan);
  fill_vector_and_complex<VectorAsin, Asin>(t.asin);
  fill_vector_and_complex<VectorAcos, Acos>(t.acos);
  fill_vector_and_complex<VectorAtan, Atan>(t.atan);
}

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::cpu {
HWY_EXPORT(fill_trigonometry);

void register_trigonometry(const Registrar& registrar) {
  static Trigonometry t;
  HWY_DYNAMIC_DISPATCH(fill_trigonometry)(t);
  const ElementwiseRow rows[] = {
      {"bp::sin", &t.sin, elementwise_unary},   {"bp::cos", &t.cos, elementwise_unary},
      {"bp::tan", &t.tan, elementwise_unary},   {"bp::asin", &t.asin, elementwise_unary},
      {"bp::acos", &t.acos, elementwise_unary}, {"bp::atan", &t.atan, elementwise_unary},
  };
  register_rows(registrar, rows, std::size(rows), __FILE__, __LINE__);
}

}  // namespace backplane::cpu
#endif
