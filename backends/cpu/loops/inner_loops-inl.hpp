// One-dimensional loops over functors, compiled once per Highway target (so without an ordinary include guard).
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
#include "loops/elementwise.hpp"
#include "simd/half_vectors-inl.hpp"

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

// A loop over half floats whose operands are not contiguous: block by block they are gathered into rows, for which the
// loop is fast. A number stays where it is.
template <int Inputs, class R>
HWY_NOINLINE const char* half_rows(InnerLoop loop, char* const* p, const int64_t* s, int64_t n) {
  constexpr int64_t kItem = sizeof(uint16_t), kBlock = 256;
  uint16_t rows[Inputs][kBlock];
  R results[kBlock];
  for (int64_t at = 0; at < n; at += kBlock) {
    const int64_t count = n - at < kBlock ? n - at : kBlock;
    char* to = p[0] + at * s[0];
    const bool direct = s[0] == int64_t{sizeof(R)};
    char* pointers[Inputs + 1] = {direct ? to : reinterpret_cast<char*>(results)};
    int64_t strides[Inputs + 1] = {sizeof(R)};
    for (int k = 1; k <= Inputs; ++k) {
      pointers[k] = p[k] + at * s[k];
      strides[k] = s[k];
      if (s[k] == 0 || s[k] == kItem) continue;
      gather_halves(pointers[k], s[k], rows[k - 1], count);
      pointers[k] = reinterpret_cast<char*>(rows[k - 1]);
      strides[k] = kItem;
    }
    loop(pointers, strides, count);
    for (int64_t i = 0; !direct && i < count; ++i) *reinterpret_cast<R*>(to + i * s[0]) = results[i];
  }
  return nullptr;
}
template <class Op, class R>
const char* half_bits_unary_loop(char* const* p, const int64_t* s, int64_t n) {
  const InnerLoop loop = unary_loop<Op, uint16_t, R>;
  return s[0] == int64_t{sizeof(R)} && s[1] == 2 ? loop(p, s, n) : half_rows<1, R>(loop, p, s, n);
}
template <class Op, class R>
const char* half_bits_binary_loop(char* const* p, const int64_t* s, int64_t n) {
  const InnerLoop loop = binary_loop<Op, uint16_t, R>;
  const bool contiguous = s[0] == int64_t{sizeof(R)} && (s[1] == 2 || s[1] == 0) && (s[2] == 2 || s[2] == 0);
  return contiguous ? loop(p, s, n) : half_rows<2, R>(loop, p, s, n);
}

// Half floats are computed in float32, tile by tile: small arrays that the compiler keeps in registers.
inline constexpr int64_t kHalfTile = 2 * int64_t{hn::MaxLanes(hn::ScalableTag<float>())};
template <class S>
HWY_INLINE void widen_tile(const S* x, float* tile) {
  const hn::ScalableTag<float> d;
  hn::Vec<decltype(d)> a, b;
  widen_pair(d, x, a, b);
  hn::StoreU(a, d, tile);
  hn::StoreU(b, d, tile + hn::Lanes(d));
}
// An operation whose results a half float holds exactly, such as the larger of two, says so: `kExact`.
template <class Op>
concept Exact = Op::kExact;
template <class Op, class S>
HWY_INLINE void narrow_tile(const float* tile, S* out) {
  const hn::ScalableTag<float> d;
  const auto a = hn::LoadU(d, tile), b = hn::LoadU(d, tile + hn::Lanes(d));
  if constexpr (Exact<Op>)
    narrow_exact_pair(d, a, b, out);
  else
    narrow_pair(d, a, b, out);
}

// What fills no tile: up to N elements at once, which the processor converts; a float16 alone takes several times as
// long by integer arithmetic.
template <size_t N>
using FewTag = hn::CappedTag<float, N>;
template <size_t N>
inline constexpr int64_t kFew = static_cast<int64_t>(hn::MaxLanes(FewTag<N>()));
template <size_t N, class S>
HWY_INLINE void widen_few(const S* x, float* few) {
  const FewTag<N> d;
  hn::StoreU(widen(d, x), d, few);
}
template <size_t N, class Op, class S>
HWY_INLINE void half_few(const S* x, S* out) {
  const FewTag<N> d;
  float a[kFew<N>];
  widen_few<N>(x, a);
  for (float& value : a) value = Op::call(value);
  narrow(d, hn::LoadU(d, a), out);
}
template <size_t N, class Op, class S>
HWY_INLINE void half_few(const S* x, const S* y, S* out) {
  const FewTag<N> d;
  float a[kFew<N>], b[kFew<N>];
  widen_few<N>(x, a);
  widen_few<N>(y, b);
  for (int64_t j = 0; j < kFew<N>; ++j) a[j] = Op::call(a[j], b[j]);
  narrow(d, hn::LoadU(d, a), out);
}

template <class Op, class S>
const char* half_unary_loop(char* const* p, const int64_t* s, int64_t n) {
  int64_t i = 0;
  if (s[0] == int64_t{sizeof(S)} && s[1] == int64_t{sizeof(S)}) {
    S* out = reinterpret_cast<S*>(p[0]);
    const S* x = reinterpret_cast<const S*>(p[1]);
    for (; i + kHalfTile <= n; i += kHalfTile) {
      float a[kHalfTile];
      widen_tile(x + i, a);
      for (int64_t j = 0; j < kHalfTile; ++j) a[j] = Op::call(a[j]);
      narrow_tile<Op>(a, out + i);
    }
    for (; i + kFew<4> <= n; i += kFew<4>) half_few<4, Op>(x + i, out + i);
  } else if (n >= kHalfTile && s[1] != 0) {
    return half_rows<1, S>(half_unary_loop<Op, S>, p, s, n);
  }
  for (; i < n; ++i)
    half_few<1, Op>(reinterpret_cast<const S*>(p[1] + i * s[1]), reinterpret_cast<S*>(p[0] + i * s[0]));
  return nullptr;
}

template <class Op, class S, bool FixedX, bool FixedY>
HWY_INLINE void half_pairs(const S* x, const S* y, S* out, int64_t n) {
  float a[kHalfTile], b[kHalfTile];
  const auto first = static_cast<float>(*x), second = static_cast<float>(*y);
  for (int64_t i = 0; i < n; i += kHalfTile) {
    if (!FixedX) widen_tile(x + i, a);
    if (!FixedY) widen_tile(y + i, b);
    for (int64_t j = 0; j < kHalfTile; ++j) a[j] = Op::call(FixedX ? first : a[j], FixedY ? second : b[j]);
    narrow_tile<Op>(a, out + i);
  }
}
template <class Op, class S>
const char* half_binary_loop(char* const* p, const int64_t* s, int64_t n) {
  constexpr int64_t kItem = sizeof(S);
  int64_t i = 0;
  const bool contiguous = s[0] == kItem && (s[1] == kItem || s[1] == 0) && (s[2] == kItem || s[2] == 0);
  if (!contiguous && n >= kHalfTile) return half_rows<2, S>(half_binary_loop<Op, S>, p, s, n);
  if (contiguous && n >= kHalfTile) {
    const auto loop = s[1] == 0 ? (s[2] == 0 ? half_pairs<Op, S, true, true> : half_pairs<Op, S, true, false>)
                                : (s[2] == 0 ? half_pairs<Op, S, false, true> : half_pairs<Op, S, false, false>);
    i = n / kHalfTile * kHalfTile;
    loop(reinterpret_cast<const S*>(p[1]), reinterpret_cast<const S*>(p[2]), reinterpret_cast<S*>(p[0]), i);
  }
  if (s[0] == kItem && s[1] == kItem && s[2] == kItem)
    for (; i + kFew<4> <= n; i += kFew<4>)
      half_few<4, Op>(reinterpret_cast<const S*>(p[1]) + i, reinterpret_cast<const S*>(p[2]) + i,
                      reinterpret_cast<S*>(p[0]) + i);
  for (; i < n; ++i)
    half_few<1, Op>(reinterpret_cast<const S*>(p[1] + i * s[1]), reinterpret_cast<const S*>(p[2] + i * s[2]),
                    reinterpret_cast<S*>(p[0] + i * s[0]));
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
  table.inner[BP_FLOAT16] = half_binary_loop<Op, plugin::float16>;
  table.inner[BP_BFLOAT16] = half_binary_loop<Op, plugin::bfloat16>;
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
  table.inner[BP_FLOAT16] = half_unary_loop<Op, plugin::float16>;
  table.inner[BP_BFLOAT16] = half_unary_loop<Op, plugin::bfloat16>;
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
