// pow, atan2 and hypot with their derivatives, logaddexp. An integer power wraps around; a negative integer exponent is
// a data error.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/powers.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <cmath>
#include <cstdlib>
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
      if constexpr (!std::is_floating_point_v<T>) {  // complex: the C library goes through log(0)
        if (b == T(0)) return T(1);
        if (b.imag() == 0 && std::abs(b.real()) <= kMostFactors && b.real() == std::trunc(b.real()))
          return by_products(a, static_cast<int>(b.real()));
      }
      // Squares are most powers in practice, and exact here; a cube equals the cube of its loop.
      if (b == T(2)) return a * a;
      if (b == T(1)) return a;
      if (b == T(3)) return a * a * a;
      return std::pow(a, b);
    }
  }

 private:
  static constexpr int kMostFactors = 128;  // beyond, products have lost as much as logarithms
  template <class T>
  static T by_products(T base, int exponent) {
    T result(1);
    for (auto rest = static_cast<unsigned>(std::abs(exponent));;) {
      if ((rest & 1u) != 0) result *= base;
      if ((rest >>= 1) == 0) return exponent < 0 ? T(1) / result : result;
      base *= base;
    }
  }
};

// One exponent for all: the most common powers cost one to three instructions.
struct VectorIdentity {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D, V x) {
    return x;
  }
};
struct VectorSquare {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D, V x) {
    return hn::Mul(x, x);
  }
};
struct VectorCube {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D, V x) {
    return hn::Mul(hn::Mul(x, x), x);
  }
};
struct VectorReciprocal {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x) {
    return hn::Div(hn::Set(d, hn::TFromD<D>(1)), x);
  }
};
// A power, unlike a root, is positive at -0 and infinite at -infinity.
struct VectorRoot {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x) {
    const V infinity = hn::Inf(d);
    return hn::IfThenElse(hn::Eq(x, hn::Neg(infinity)), infinity, hn::Sqrt(hn::Add(x, hn::Zero(d))));
  }
};
struct VectorReciprocalRoot {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x) {
    return hn::Div(hn::Set(d, hn::TFromD<D>(1)), VectorRoot::call(d, x));
  }
};
template <class T>
const char* pow_loop(char* const* p, const int64_t* s, int64_t n) {
  const T exponent = *reinterpret_cast<const T*>(p[2]);
  if (s[2] == 0) {
    if (exponent == 2) return vector_loop<VectorSquare, T>(p, s, n);
    if (exponent == 1) return vector_loop<VectorIdentity, T>(p, s, n);
    if (exponent == 3) return vector_loop<VectorCube, T>(p, s, n);
    if (exponent == -1) return vector_loop<VectorReciprocal, T>(p, s, n);
    if (exponent == T(0.5)) return vector_loop<VectorRoot, T>(p, s, n);
    if (exponent == T(-0.5)) return vector_loop<VectorReciprocalRoot, T>(p, s, n);
  }
  return vector_pair_loop<VectorPow, T>(p, s, n);
}

void fill_pow(Elementwise& t) {
  fill_checked<Pow, true>(t);
  t.inner[BP_FLOAT32] = pow_loop<float>;
  t.inner[BP_FLOAT64] = pow_loop<double>;
  t.grain = kFunctionGrain;
}

// x and y by the larger of their magnitudes, and the sum of the quotients' squares, which is from 1 to 2. Infinities
// count as equal, zeros as 0.
template <class V>
struct ScaledPair {
  V x, y, larger, squares;
};
template <class D, class V = hn::Vec<D>>
HWY_INLINE ScaledPair<V> scale_pair(D d, V x, V y) {
  using T = hn::TFromD<D>;
  const V a = hn::Abs(x), b = hn::Abs(y), one = hn::Set(d, T(1)), larger = hn::Max(a, b);
  const V infinity = hn::Set(d, std::numeric_limits<T>::infinity());
  const V divisor = hn::IfThenElse(hn::Eq(larger, hn::Zero(d)), one, larger);
  const V p = hn::IfThenElse(hn::Eq(a, infinity), hn::CopySign(one, x), hn::Div(x, divisor));
  const V q = hn::IfThenElse(hn::Eq(b, infinity), hn::CopySign(one, y), hn::Div(y, divisor));
  return {p, q, divisor, hn::Max(hn::MulAdd(p, p, hn::Mul(q, q)), one)};
}
// Are the squares of both, and their sum, right in every lane?
template <class D, class V = hn::Vec<D>>
HWY_INLINE bool ordinary_squares(D d, V squares) {
  using T = hn::TFromD<D>;
  const V low = hn::Set(d, kIsFloat32<T> ? T(1e-30) : T(1e-280)), high = hn::Set(d, kIsFloat32<T> ? T(1e30) : T(1e280));
  return hn::AllTrue(d, hn::And(hn::Gt(squares, low), hn::Lt(squares, high)));
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE V unless_nan(V result, V x, V y) {
  return hn::IfThenElse(hn::And(hn::Eq(x, x), hn::Eq(y, y)), result, hn::Add(x, y));
}
// x / hypot(x, y)
struct VectorHypotSlope {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x, V y) {
    const V squares = hn::MulAdd(x, x, hn::Mul(y, y));
    if (HWY_LIKELY(ordinary_squares(d, squares))) return hn::Div(x, hn::Sqrt(squares));
    const ScaledPair<V> p = scale_pair(d, x, y);
    return unless_nan<D>(hn::Div(p.x, hn::Sqrt(p.squares)), x, y);
  }
};
// y / (x^2 + y^2)
struct VectorAtan2Slope {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x, V y) {
    const V squares = hn::MulAdd(x, x, hn::Mul(y, y));
    if (HWY_LIKELY(ordinary_squares(d, squares))) return hn::Div(y, squares);
    const ScaledPair<V> p = scale_pair(d, x, y);
    return unless_nan<D>(hn::Div(hn::Div(p.y, p.squares), p.larger), x, y);
  }
};

std::span<ElementwiseRow> powers_rows() {
  static ElementwiseRow rows[] = {
      {"bp::pow", elementwise_binary, {fill_pow, fill_binary_complex<Pow>}},
      {"bp::atan2", elementwise_binary, {fill_vector_pairs<VectorAtan2>}},
      {"bp::hypot", elementwise_binary, {fill_vector_pairs<VectorHypot>}},
      {"bp::hypot_slope", elementwise_binary, {fill_vector_pairs<VectorHypotSlope>}},
      {"bp::atan2_slope", elementwise_binary, {fill_vector_pairs<VectorAtan2Slope>}},
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
