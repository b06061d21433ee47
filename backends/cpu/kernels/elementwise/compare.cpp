// equal, not_equal, less, less_equal, greater, greater_equal, isnan, isinf, isfinite: results are bool.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/compare.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <cmath>
#include <iterator>
#include <limits>

#include "kernels/families.hpp"
#include "loops/elementwise.hpp"
#include "loops/inner_loops-inl.hpp"

#ifndef BACKPLANE_CPU_COMPARE
#define BACKPLANE_CPU_COMPARE
namespace backplane::cpu {
struct Compare {
  Elementwise equal{}, not_equal{}, less{}, less_equal{}, greater{}, greater_equal{}, isnan{}, isinf{}, isfinite{};
};
}  // namespace backplane::cpu
#endif

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
  t.inner[BP_BOOL] = t.inner[BP_INT8] = t.inner[BP_UINT8] = binary_loop<Op, uint8_t>;
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
template <class Op, class T>
void fill_ordered(Elementwise& t, Elementwise& opposite, bp_dtype dtype) {
  t.inner[dtype] = binary_loop<Op, T, uint8_t>;
  opposite.inner[dtype] = exchanged<binary_loop<Op, T, uint8_t>>;
}
template <class Op, class OfFloat16, class OfBfloat16>
void fill_order(Elementwise& t, Elementwise& opposite) {
  fill_ordered<Op, uint8_t>(t, opposite, BP_BOOL);
  fill_ordered<Op, int8_t>(t, opposite, BP_INT8);
  fill_ordered<Op, int16_t>(t, opposite, BP_INT16);
  fill_ordered<Op, int32_t>(t, opposite, BP_INT32);
  fill_ordered<Op, int64_t>(t, opposite, BP_INT64);
  fill_ordered<Op, uint8_t>(t, opposite, BP_UINT8);
  fill_ordered<Op, uint16_t>(t, opposite, BP_UINT16);
  fill_ordered<Op, uint32_t>(t, opposite, BP_UINT32);
  fill_ordered<Op, uint64_t>(t, opposite, BP_UINT64);
  t.inner[BP_FLOAT16] = half_bits_binary_loop<OfFloat16, uint8_t>;
  t.inner[BP_BFLOAT16] = half_bits_binary_loop<OfBfloat16, uint8_t>;
  opposite.inner[BP_FLOAT16] = exchanged<half_bits_binary_loop<OfFloat16, uint8_t>>;
  opposite.inner[BP_BFLOAT16] = exchanged<half_bits_binary_loop<OfBfloat16, uint8_t>>;
  fill_ordered<Op, float>(t, opposite, BP_FLOAT32);
  fill_ordered<Op, double>(t, opposite, BP_FLOAT64);
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

void fill_compare(Compare& t) {
  fill_equality<Equal, Float16::Equal, Bfloat16::Equal>(t.equal);
  fill_equality<NotEqual, Float16::NotEqual, Bfloat16::NotEqual>(t.not_equal);
  fill_order<Less, Float16::Less, Bfloat16::Less>(t.less, t.greater);
  fill_order<LessEqual, Float16::LessEqual, Bfloat16::LessEqual>(t.less_equal, t.greater_equal);
  fill_class<IsNan, Float16::IsNan, Bfloat16::IsNan>(t.isnan);
  fill_class<IsInf, Float16::IsInf, Bfloat16::IsInf>(t.isinf);
  fill_class<IsFinite, Float16::IsFinite, Bfloat16::IsFinite>(t.isfinite);
}

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::cpu {
HWY_EXPORT(fill_compare);

void register_compare(const Registrar& registrar) {
  static Compare t;
  HWY_DYNAMIC_DISPATCH(fill_compare)(t);
  const ElementwiseRow rows[] = {
      {"bp::equal", &t.equal, elementwise_binary},      {"bp::not_equal", &t.not_equal, elementwise_binary},
      {"bp::less", &t.less, elementwise_binary},        {"bp::less_equal", &t.less_equal, elementwise_binary},
      {"bp::greater", &t.greater, elementwise_binary},  {"bp::greater_equal", &t.greater_equal, elementwise_binary},
      {"bp::isnan", &t.isnan, elementwise_unary},       {"bp::isinf", &t.isinf, elementwise_unary},
      {"bp::isfinite", &t.isfinite, elementwise_unary},
  };
  register_rows(registrar, rows, std::size(rows), __FILE__, __LINE__);
}

}  // namespace backplane::cpu
#endif
