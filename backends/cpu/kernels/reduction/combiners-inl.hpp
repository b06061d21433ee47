// What reductions make of two elements or two vectors: sum, product, larger, smaller, either, both; included once per
// Highway target.
#if defined(BACKPLANE_CPU_COMBINERS) == defined(HWY_TARGET_TOGGLE)
#ifdef BACKPLANE_CPU_COMBINERS
#undef BACKPLANE_CPU_COMBINERS
#else
#define BACKPLANE_CPU_COMBINERS
#endif

#include <complex>
#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

struct Sum {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V vector(D, V a, V b) {
    return hn::Add(a, b);
  }
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V exact(D d, V a, V b) {
    return vector(d, a, b);
  }
  template <class T>
  static HWY_INLINE T call(T a, T b) {
    return a + b;
  }
};
struct Prod {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V vector(D, V a, V b) {
    return hn::Mul(a, b);
  }
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V exact(D d, V a, V b) {
    return vector(d, a, b);
  }
  template <class T>
  static HWY_INLINE T call(T a, T b) {
    return a * b;
  }
  template <class T>
  static HWY_INLINE std::complex<T> call(std::complex<T> a, std::complex<T> b) {
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  }
};
// A NaN on either side stays; of the vector forms only where the caller looks for one beside them.
struct Max {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V vector(D, V a, V b) {
    return hn::Max(a, b);
  }
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V exact(D, V a, V b) {
    return hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b);
  }
  template <class T>
  static HWY_INLINE T call(T a, T b) {
    return (a > b) | (a != a) ? a : b;
  }
};
struct Min {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V vector(D, V a, V b) {
    return hn::Min(a, b);
  }
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V exact(D, V a, V b) {
    return hn::IfThenElse(hn::Or(hn::Lt(a, b), hn::IsNaN(a)), a, b);
  }
  template <class T>
  static HWY_INLINE T call(T a, T b) {
    return (a < b) | (a != a) ? a : b;
  }
};
struct Any {
  static HWY_INLINE uint8_t call(uint8_t a, uint8_t b) { return a | b; }
};
struct All {
  static HWY_INLINE uint8_t call(uint8_t a, uint8_t b) { return (a != 0) & (b != 0); }
};

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();
#endif
