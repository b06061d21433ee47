// One-dimensional loops over functors, compiled once per Highway target (hence no ordinary include guard).
//
// A functor has `static HWY_INLINE R call(T...)`. Contiguous operands and numbers get loops that the compiler
// vectorises; anything else walks by stride. `ivdep`: an output may be exactly an input, which carries no dependence.
#if defined(BACKPLANE_CPU_INNER_LOOPS) == defined(HWY_TARGET_TOGGLE)
#ifdef BACKPLANE_CPU_INNER_LOOPS
#undef BACKPLANE_CPU_INNER_LOOPS
#else
#define BACKPLANE_CPU_INNER_LOOPS
#endif

#include <complex>
#include <cstdint>

#include "hwy/highway.h"
#include "kernels/elementwise.hpp"

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {

template <class Op, class T, class R = T>
const char* unary_loop(char* const* p, const int64_t* s, int64_t n) {
  if (s[0] == int64_t{sizeof(R)} && s[1] == int64_t{sizeof(T)}) {
    R* out = reinterpret_cast<R*>(p[0]);
    const T* x = reinterpret_cast<const T*>(p[1]);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = Op::call(x[i]);
    return nullptr;
  }
  char* out = p[0];
  const char* x = p[1];
  for (int64_t i = 0; i < n; ++i, out += s[0], x += s[1])
    *reinterpret_cast<R*>(out) = Op::call(*reinterpret_cast<const T*>(x));
  return nullptr;
}

template <class Op, class T, class R = T>
const char* binary_loop(char* const* p, const int64_t* s, int64_t n) {
  constexpr int64_t kItem = sizeof(T);
  if (s[0] == int64_t{sizeof(R)}) {
    R* out = reinterpret_cast<R*>(p[0]);
    const T* x = reinterpret_cast<const T*>(p[1]);
    const T* y = reinterpret_cast<const T*>(p[2]);
    if (s[1] == kItem && s[2] == kItem) {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) out[i] = Op::call(x[i], y[i]);
      return nullptr;
    }
    if (s[1] == kItem && s[2] == 0) {
      const T b = *y;
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) out[i] = Op::call(x[i], b);
      return nullptr;
    }
    if (s[1] == 0 && s[2] == kItem) {
      const T a = *x;
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) out[i] = Op::call(a, y[i]);
      return nullptr;
    }
  }
  char* out = p[0];
  const char *x = p[1], *y = p[2];
  for (int64_t i = 0; i < n; ++i, out += s[0], x += s[1], y += s[2])
    *reinterpret_cast<R*>(out) = Op::call(*reinterpret_cast<const T*>(x), *reinterpret_cast<const T*>(y));
  return nullptr;
}

template <class Op>
void fill_binary_integers(Elementwise& table) {
  table.inner[BP_INT8] = binary_loop<Op, int8_t>;
  table.inner[BP_INT16] = binary_loop<Op, int16_t>;
  table.inner[BP_INT32] = binary_loop<Op, int32_t>;
  table.inner[BP_INT64] = binary_loop<Op, int64_t>;
  table.inner[BP_UINT8] = binary_loop<Op, uint8_t>;
  table.inner[BP_UINT16] = binary_loop<Op, uint16_t>;
  table.inner[BP_UINT32] = binary_loop<Op, uint32_t>;
  table.inner[BP_UINT64] = binary_loop<Op, uint64_t>;
}
// For operations whose bits do not depend on the sign.
template <class Op>
void fill_binary_words(Elementwise& table) {
  table.inner[BP_INT8] = table.inner[BP_UINT8] = binary_loop<Op, uint8_t>;
  table.inner[BP_INT16] = table.inner[BP_UINT16] = binary_loop<Op, uint16_t>;
  table.inner[BP_INT32] = table.inner[BP_UINT32] = binary_loop<Op, uint32_t>;
  table.inner[BP_INT64] = table.inner[BP_UINT64] = binary_loop<Op, uint64_t>;
}
template <class Op>
void fill_binary_floats(Elementwise& table) {
  table.inner[BP_FLOAT32] = binary_loop<Op, float>;
  table.inner[BP_FLOAT64] = binary_loop<Op, double>;
}
template <class Op>
void fill_binary_complex(Elementwise& table) {
  table.inner[BP_COMPLEX64] = binary_loop<Op, std::complex<float>>;
  table.inner[BP_COMPLEX128] = binary_loop<Op, std::complex<double>>;
}
template <class Op>
void fill_unary_integers(Elementwise& table) {
  table.inner[BP_INT8] = unary_loop<Op, int8_t>;
  table.inner[BP_INT16] = unary_loop<Op, int16_t>;
  table.inner[BP_INT32] = unary_loop<Op, int32_t>;
  table.inner[BP_INT64] = unary_loop<Op, int64_t>;
  table.inner[BP_UINT8] = unary_loop<Op, uint8_t>;
  table.inner[BP_UINT16] = unary_loop<Op, uint16_t>;
  table.inner[BP_UINT32] = unary_loop<Op, uint32_t>;
  table.inner[BP_UINT64] = unary_loop<Op, uint64_t>;
}
template <class Op>
void fill_unary_floats(Elementwise& table) {
  table.inner[BP_FLOAT32] = unary_loop<Op, float>;
  table.inner[BP_FLOAT64] = unary_loop<Op, double>;
}
template <class Op>
void fill_unary_complex(Elementwise& table) {
  table.inner[BP_COMPLEX64] = unary_loop<Op, std::complex<float>>;
  table.inner[BP_COMPLEX128] = unary_loop<Op, std::complex<double>>;
}

// Looks for a divisor of 0, or a negative exponent, before anything is computed: the loop itself stays plain.
template <class Op, class T, bool NegativeIsBad>
const char* checked_loop(char* const* p, const int64_t* s, int64_t n) {
  const char* y = p[2];
  const int64_t count = s[2] == 0 ? 1 : n;
  bool bad = false;
  for (int64_t i = 0; i < count; ++i, y += s[2]) {
    const T value = *reinterpret_cast<const T*>(y);
    if constexpr (NegativeIsBad) {
      bad |= value < T(0);
    } else {
      bad |= value == T(0);
    }
  }
  if (bad)
    return NegativeIsBad ? "an integer exponent is negative; cast to a floating dtype" : "an integer divisor is 0";
  return binary_loop<Op, T>(p, s, n);
}
template <class Op, bool NegativeIsBad>
void fill_checked(Elementwise& table) {
  table.inner[BP_INT8] = checked_loop<Op, int8_t, NegativeIsBad>;
  table.inner[BP_INT16] = checked_loop<Op, int16_t, NegativeIsBad>;
  table.inner[BP_INT32] = checked_loop<Op, int32_t, NegativeIsBad>;
  table.inner[BP_INT64] = checked_loop<Op, int64_t, NegativeIsBad>;
  table.inner[BP_UINT8] = checked_loop<Op, uint8_t, NegativeIsBad>;
  table.inner[BP_UINT16] = checked_loop<Op, uint16_t, NegativeIsBad>;
  table.inner[BP_UINT32] = checked_loop<Op, uint32_t, NegativeIsBad>;
  table.inner[BP_UINT64] = checked_loop<Op, uint64_t, NegativeIsBad>;
}

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();
#endif
