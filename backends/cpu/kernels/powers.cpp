// pow, atan2, hypot, logaddexp. An integer power wraps around; a negative integer exponent is a data error.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/powers.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <cmath>
#include <iterator>
#include <type_traits>

#include "kernels/elementwise.hpp"
#include "kernels/families.hpp"
#include "kernels/inner_loops-inl.hpp"

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
struct Atan2 {
  template <class T>
  static HWY_INLINE T call(T a, T b) {
    return std::atan2(a, b);
  }
};
struct Hypot {
  template <class T>
  static HWY_INLINE T call(T a, T b) {
    return std::hypot(a, b);
  }
};
struct LogAddExp {
  template <class T>
  static HWY_INLINE T call(T a, T b) {
    if (a == b) return a + T(0.69314718055994530942);  // equal infinities included
    const T larger = a > b ? a : b;
    return larger + std::log1p(std::exp(-std::abs(a - b)));
  }
};

void fill_powers(Powers& t) {
  fill_checked<Pow, true>(t.pow);
  fill_binary_floats<Pow>(t.pow);
  fill_binary_complex<Pow>(t.pow);
  fill_binary_floats<Atan2>(t.atan2);
  fill_binary_floats<Hypot>(t.hypot);
  fill_binary_floats<LogAddExp>(t.logaddexp);
  t.pow.grain = t.atan2.grain = t.hypot.grain = t.logaddexp.grain = kCostlyGrain;
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
