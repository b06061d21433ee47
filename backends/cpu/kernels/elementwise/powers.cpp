// pow, atan2, hypot, logaddexp. An integer power wraps around; a negative integer exponent is a data error.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/powers.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <cmath>
#include <iterator>
#include <type_traits>

#include "kernels/families.hpp"
#include "loops/elementwise.hpp"
#include "loops/inner_loops-inl.hpp"
#include "simd/vector_math-inl.hpp"
#include "simd/vector_pow-inl.hpp"
#include "simd/vector_trig-inl.hpp"

#ifndef BACKPLANE_CPU_POWERS
#define BACKPLANE_CPU_POWERS
namespace backplane::cpu {
struct Powers {
  Elementwise pow{}, atan2{}, hypot{}, logaddexp{};
};
}  // namespace backplane::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {

struct Pow {
  template <class T>
  static HWY_INLINE T call(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      using U = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;
      U result = 1, base = static_cast<U>(a);
      for (auto exponent = static_cast<std::make_unsigned_t<T>>(b); exponent != 0; exponent >>= 1) {
        if ((exponent & 1u) != 0) result *= base;
        base *= base;
      }
      return static_cast<T>(result);
    } else {
      // Squares, roots and reciprocals are most powers in practice, and exact here.
      if (b == T(2)) return a * a;
      if (b == T(1)) return a;
      return std::pow(a, b);
    }
  }
};
// One exponent for all: what is most powers in practice costs one instruction, and is exact.
struct VectorSquare {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D, V x) {
    return hn::Mul(x, x);
  }
};
struct VectorReciprocal {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x) {
    return hn::Div(hn::Set(d, hn::TFromD<D>(1)), x);
  }
};
template <class T>
const char* pow_loop(char* const* p, const int64_t* s, int64_t n) {
  const T exponent = *reinterpret_cast<const T*>(p[2]);
  if (s[2] == 0 && exponent == 2) return vector_loop<VectorSquare, T>(p, s, n);
  if (s[2] == 0 && exponent == -1) return vector_loop<VectorReciprocal, T>(p, s, n);
  return vector_pair_loop<VectorPow, T>(p, s, n);
}

void fill_powers(Powers& t) {
  fill_checked<Pow, true>(t.pow);
  t.pow.inner[BP_FLOAT32] = pow_loop<float>;
  t.pow.inner[BP_FLOAT64] = pow_loop<double>;
  t.pow.grain = kFunctionGrain;
  fill_binary_complex<Pow>(t.pow);
  fill_vector_pairs<VectorAtan2>(t.atan2);
  fill_vector_pairs<VectorHypot>(t.hypot);
  fill_vector_pairs<VectorLogAddExp>(t.logaddexp);
}

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::cpu {
HWY_EXPORT(fill_powers);

void register_powers(const Registrar& registrar) {
  static Powers t;
  HWY_DYNAMIC_DISPATCH(fill_powers)(t);
  const ElementwiseRow rows[] = {
      {"bp::pow", &t.pow, elementwise_binary},
      {"bp::atan2", &t.atan2, elementwise_binary},
      {"bp::hypot", &t.hypot, elementwise_binary},
      {"bp::logaddexp", &t.logaddexp, elementwise_binary},
  };
  register_rows(registrar, rows, std::size(rows), __FILE__, __LINE__);
}

}  // namespace backplane::cpu
#endif
