// pow, atan2, hypot, logaddexp. An integer power wraps around; a negative integer exponent is a data error.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/powers.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <cmath>
#include <type_traits>

#include "kernels/families.hpp"
#include "loops/elementwise.hpp"
#include "loops/inner_loops-inl.hpp"
#include "loops/vector_math-inl.hpp"
#include "simd/vector_pow-inl.hpp"
#include "simd/vector_trig-inl.hpp"

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
      if constexpr (!std::is_floating_point_v<T>)  // complex: the C library goes through log(0)
        if (b == T(0)) return T(1);
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

void fill_pow(Elementwise& t) {
  fill_checked<Pow, true>(t);
  t.inner[BP_FLOAT32] = pow_loop<float>;
  t.inner[BP_FLOAT64] = pow_loop<double>;
  t.grain = kFunctionGrain;
}

std::span<ElementwiseRow> powers_rows() {
  static ElementwiseRow rows[] = {
      {"bp::pow", elementwise_binary, {fill_pow, fill_binary_complex<Pow>}},
      {"bp::atan2", elementwise_binary, {fill_vector_pairs<VectorAtan2>}},
      {"bp::hypot", elementwise_binary, {fill_vector_pairs<VectorHypot>}},
      {"bp::logaddexp", elementwise_binary, {fill_vector_pairs<VectorLogAddExp>}},
  };
  return rows;
}

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::cpu {
HWY_EXPORT(powers_rows);

const Family kPowers([](const Registrar& registrar) {
  register_elementwise(registrar, HWY_DYNAMIC_DISPATCH(powers_rows)(), __FILE__, __LINE__);
});

}  // namespace backplane::cpu
#endif
