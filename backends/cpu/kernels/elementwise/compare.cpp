// equal, not_equal, less, less_equal, greater, greater_equal, isnan, isinf, isfinite: results are bool.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/compare.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <cmath>
#include <limits>

#include "kernels/elementwise/of_bools-inl.hpp"
#include "kernels/families.hpp"
#include "loops/elementwise.hpp"
#include "loops/inner_loops-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {

#define BACKPLANE_COMPARISON(name, op)         \
  struct name {                                \
    template <class T>                         \
    static HWY_INLINE uint8_t call(T a, T b) { \
      return static_cast<uint8_t>(a op b);     \
    }                                          \
  };
BACKPLANE_COMPARISON(Equal, ==)
BACKPLANE_COMPARISON(NotEqual, !=)
BACKPLANE_COMPARISON(Less, <)
BACKPLANE_COMPARISON(LessEqual, <=)
#undef BACKPLANE_COMPARISON
// a > b is b < a with the operands exchanged: half the loops.
template <InnerLoop Loop>
const char* exchanged(char* const* p, const int64_t* s, int64_t n) {
  char* const pointers[3] = {p[0], p[2], p[1]};
  const int64_t strides[3] = {s[0], s[2], s[1]};
  return Loop(pointers, strides, n);
}

struct IsNan {
  template <class T>
  static HWY_INLINE uint8_t call(T a) {
    return static_cast<uint8_t>(a != a);
  }
};
struct IsInf {
  template <class T>
  static HWY_INLINE uint8_t call(T a) {
    return static_cast<uint8_t>(std::abs(a) == std::numeric_limits<T>::infinity());
  }
  template <class T>
  static HWY_INLINE uint8_t call(std::complex<T> a) {
    return call(a.real()) | call(a.imag());
  }
};
struct IsFinite {
  template <class T>
  static HWY_INLINE uint8_t call(T a) {
    return static_cast<uint8_t>(std::abs(a) < std::numeric_limits<T>::infinity());
  }
  template <class T>
  static HWY_INLINE uint8_t call(std::complex<T> a) {
    return call(a.real()) & call(a.imag());
  }
};

// Half floats are compared as they lie. kInfinity has the bits of infinity: a larger magnitude is a NaN. As a signed
// number, negative where the sign bit is set, a magnitude has its place in the order, and the zeros are equal.
template <uint16_t kInfinity>
struct HalfBits {
  static HWY_INLINE uint16_t magnitude(uint16_t a) { return static_cast<uint16_t>(a & 0x7fff); }
  static HWY_INLINE bool number(uint16_t a) { return magnitude(a) <= kInfinity; }
  static HWY_INLINE int16_t place(uint16_t a) {
    const auto sign = static_cast<int16_t>(static_cast<int16_t>(a) >> 15);
    return static_cast<int16_t>((magnitude(a) ^ sign) - sign);
  }
  struct Equal {
    static HWY_INLINE uint8_t call(uint16_t a, uint16_t b) {
      return static_cast<uint8_t>(((a == b) | (magnitude(a | b) == 0)) & number(a));
    }
  };
  struct NotEqual {
    static HWY_INLINE uint8_t call(uint16_t a, uint16_t b) { return Equal::call(a, b) ^ 1; }
  };
  struct Less {
    static HWY_INLINE uint8_t call(uint16_t a, uint16_t b) {
      return static_cast<uint8_t>((place(a) < place(b)) & number(a) & number(b));
    }
  };
  struct LessEqual {
    static HWY_INLINE uint8_t call(uint16_t a, uint16_t b) {
      return static_cast<uint8_t>((place(a) <= place(b)) & number(a) & number(b));
    }
  };
  struct IsNan {
    static HWY_INLINE uint8_t call(uint16_t a) { return magnitude(a) > kInfinity; }
  };
  struct IsInf {
    static HWY_INLINE uint8_t call(uint16_t a) { return magnitude(a) == kInfinity; }
  };
  struct IsFinite {
    static HWY_INLINE uint8_t call(uint16_t a) { return magnitude(a) < kInfinity; }
  };
};
using Float16 = HalfBits<0x7c00>;
using Bfloat16 = HalfBits<0x7f80>;

template <class Op, class OfFloat16, class OfBfloat16>
void fill_equality(Elementwise& t) {
  t.inner[BP_BOOL] = binary_loop<OfBools<Op>, uint8_t>;
  t.inner[BP_INT8] = t.inner[BP_UINT8] = binary_loop<Op, uint8_t>;
  t.inner[BP_INT16] = t.inner[BP_UINT16] = binary_loop<Op, uint16_t, uint8_t>;
  t.inner[BP_INT32] = t.inner[BP_UINT32] = binary_loop<Op, uint32_t, uint8_t>;
  t.inner[BP_INT64] = t.inner[BP_UINT64] = binary_loop<Op, uint64_t, uint8_t>;
  t.inner[BP_FLOAT16] = half_bits_binary_loop<OfFloat16, uint8_t>;
  t.inner[BP_BFLOAT16] = half_bits_binary_loop<OfBfloat16, uint8_t>;
  t.inner[BP_FLOAT32] = binary_loop<Op, float, uint8_t>;
  t.inner[BP_FLOAT64] = binary_loop<Op, double, uint8_t>;
  t.inner[BP_COMPLEX64] = binary_loop<Op, std::complex<float>, uint8_t>;
  t.inner[BP_COMPLEX128] = binary_loop<Op, std::complex<double>, uint8_t>;
}
template <bool Exchanged, InnerLoop loop>
inline constexpr InnerLoop kOrder = Exchanged ? exchanged<loop> : loop;
template <class Op, class OfFloat16, class OfBfloat16, bool Exchanged = false>
void fill_order(Elementwise& t) {
  t.inner[BP_BOOL] = kOrder<Exchanged, binary_loop<OfBools<Op>, uint8_t, uint8_t>>;
  t.inner[BP_UINT8] = kOrder<Exchanged, binary_loop<Op, uint8_t, uint8_t>>;
  t.inner[BP_INT8] = kOrder<Exchanged, binary_loop<Op, int8_t, uint8_t>>;
  t.inner[BP_INT16] = kOrder<Exchanged, binary_loop<Op, int16_t, uint8_t>>;
  t.inner[BP_INT32] = kOrder<Exchanged, binary_loop<Op, int32_t, uint8_t>>;
  t.inner[BP_INT64] = kOrder<Exchanged, binary_loop<Op, int64_t, uint8_t>>;
  t.inner[BP_UINT16] = kOrder<Exchanged, binary_loop<Op, uint16_t, uint8_t>>;
  t.inner[BP_UINT32] = kOrder<Exchanged, binary_loop<Op, uint32_t, uint8_t>>;
  t.inner[BP_UINT64] = kOrder<Exchanged, binary_loop<Op, uint64_t, uint8_t>>;
  t.inner[BP_FLOAT16] = kOrder<Exchanged, half_bits_binary_loop<OfFloat16, uint8_t>>;
  t.inner[BP_BFLOAT16] = kOrder<Exchanged, half_bits_binary_loop<OfBfloat16, uint8_t>>;
  t.inner[BP_FLOAT32] = kOrder<Exchanged, binary_loop<Op, float, uint8_t>>;
  t.inner[BP_FLOAT64] = kOrder<Exchanged, binary_loop<Op, double, uint8_t>>;
}
// Integers are always finite: they are left to the ops' decompositions.
template <class Op, class OfFloat16, class OfBfloat16>
void fill_class(Elementwise& t) {
  t.inner[BP_FLOAT16] = half_bits_unary_loop<OfFloat16, uint8_t>;
  t.inner[BP_BFLOAT16] = half_bits_unary_loop<OfBfloat16, uint8_t>;
  t.inner[BP_FLOAT32] = unary_loop<Op, float, uint8_t>;
  t.inner[BP_FLOAT64] = unary_loop<Op, double, uint8_t>;
  t.inner[BP_COMPLEX64] = unary_loop<Op, std::complex<float>, uint8_t>;
  t.inner[BP_COMPLEX128] = unary_loop<Op, std::complex<double>, uint8_t>;
}

std::span<ElementwiseRow> compare_rows() {
  static ElementwiseRow rows[] = {
      {"bp::equal", elementwise_binary, {fill_equality<Equal, Float16::Equal, Bfloat16::Equal>}},
      {"bp::not_equal", elementwise_binary, {fill_equality<NotEqual, Float16::NotEqual, Bfloat16::NotEqual>}},
      {"bp::less", elementwise_binary, {fill_order<Less, Float16::Less, Bfloat16::Less>}},
      {"bp::less_equal", elementwise_binary, {fill_order<LessEqual, Float16::LessEqual, Bfloat16::LessEqual>}},
      {"bp::greater", elementwise_binary, {fill_order<Less, Float16::Less, Bfloat16::Less, true>}},
      {"bp::greater_equal", elementwise_binary, {fill_order<LessEqual, Float16::LessEqual, Bfloat16::LessEqual, true>}},
      {"bp::isnan", elementwise_unary, {fill_class<IsNan, Float16::IsNan, Bfloat16::IsNan>}},
      {"bp::isinf", elementwise_unary, {fill_class<IsInf, Float16::IsInf, Bfloat16::IsInf>}},
      {"bp::isfinite", elementwise_unary, {fill_class<IsFinite, Float16::IsFinite, Bfloat16::IsFinite>}},
  };
  return rows;
}

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::cpu {
HWY_EXPORT(compare_rows);

const Family kCompare([](const Registrar& registrar) {
  register_elementwise(registrar, HWY_DYNAMIC_DISPATCH(compare_rows)(), __FILE__, __LINE__);
});

}  // namespace backplane::cpu
#endif
