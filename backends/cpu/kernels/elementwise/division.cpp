// floor_divide, remainder and fmod. The first two follow the sign of the divisor, fmod the sign of the dividend.
//
// An integer divisor of 0 is a data error, and the smallest integer divided by -1 wraps instead of trapping.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/division.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <cmath>
#include <type_traits>

#include "kernels/families.hpp"
#include "loops/elementwise.hpp"
#include "loops/inner_loops-inl.hpp"
#include "loops/vector_math-inl.hpp"
#include "simd/vector_pow-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {

struct FloorDivide {
  template <class T>
  static HWY_INLINE T call(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      // By the exact remainder, so that the quotient of an exact multiple is exact (Python's definition); where the
      // plain quotient is 0, infinite or NaN it is the array API's result, sign included.
      if (a == 0 || b == 0 || !std::isfinite(a) || std::isinf(b)) return a / b;
      const T rest = std::fmod(a, b);
      T quotient = (a - rest) / b;
      if (rest != 0 && (rest < 0) != (b < 0)) quotient -= 1;
      const T floored = std::floor(quotient), nearest = quotient - floored > T(0.5) ? floored + 1 : floored;
      return nearest == 0 ? std::copysign(nearest, a / b) : nearest;
    } else if constexpr (std::is_signed_v<T>) {
      using U = std::make_unsigned_t<T>;
      if (b == -1) return static_cast<T>(U{0} - static_cast<U>(a));
      const T quotient = static_cast<T>(a / b);
      return static_cast<T>(quotient - ((a % b != 0) & ((a < 0) != (b < 0))));
    } else {
      return static_cast<T>(a / b);
    }
  }
};
struct Remainder {
  template <class T>
  static HWY_INLINE T call(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      const T rest = std::fmod(a, b);
      if (rest == 0) return std::copysign(T(0), b);
      return (rest < 0) != (b < 0) ? rest + b : rest;
    } else if constexpr (std::is_signed_v<T>) {
      if (b == -1) return 0;
      const T rest = static_cast<T>(a % b);
      return static_cast<T>((rest != 0) & ((rest < 0) != (b < 0)) ? rest + b : rest);
    } else {
      return static_cast<T>(a % b);
    }
  }
};
struct Fmod {
  template <class T>
  static HWY_INLINE T call(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::fmod(a, b);
    } else if constexpr (std::is_signed_v<T>) {
      return b == T(-1) ? T(0) : static_cast<T>(a % b);
    } else {
      return static_cast<T>(a % b);
    }
  }
};

std::span<ElementwiseRow> division_rows() {
  static ElementwiseRow rows[] = {
      {"bp::floor_divide",
       elementwise_binary,
       {fill_checked<FloorDivide, false>, fill_vector_pairs<VectorFloorDivide<FloorDivide>>}},
      {"bp::remainder",
       elementwise_binary,
       {fill_checked<Remainder, false>, fill_vector_pairs<VectorRemainder<Remainder>>}},
      {"bp::fmod", elementwise_binary, {fill_checked<Fmod, false>, fill_vector_pairs<VectorFmod<Fmod>>}},
  };
  return rows;
}

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::cpu {
HWY_EXPORT(division_rows);

const Family kDivision([](const Registrar& registrar) {
  register_elementwise(registrar, HWY_DYNAMIC_DISPATCH(division_rows)(), __FILE__, __LINE__);
});

}  // namespace backplane::cpu
#endif
