// Loops over functions of float32 and float64 on vectors, and activations made of those; included once per Highway
// target. A function has `static V call(D, V...)`.
#if defined(BACKPLANE_CPU_VECTOR_MATH) == defined(HWY_TARGET_TOGGLE)
#ifdef BACKPLANE_CPU_VECTOR_MATH
#undef BACKPLANE_CPU_VECTOR_MATH
#else
#define BACKPLANE_CPU_VECTOR_MATH
#endif

#include <complex>
#include <cstdint>

#include "hwy/highway.h"
#include "loops/fused_loops-inl.hpp"
#include "loops/inner_loops-inl.hpp"
#include "simd/vector_erf-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// By exp(-|x|), which overflows on neither side.
struct VectorSigmoid {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x) {
    const V one = hn::Set(d, hn::TFromD<D>(1));
    const V e = VectorExp::call(d, hn::Neg(hn::Abs(x)));
    return hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one), hn::Add(one, e));
  }
};
struct VectorSilu {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x) {
    return hn::Mul(finite_below(d, x), VectorSigmoid::call(d, x));
  }
};
// out[i] = F(x[i]); out may be x.
template <class F, class T>
HWY_INLINE void map_contiguous(const T* x, T* out, int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(F::call(d, hn::LoadU(d, x + i)), d, out + i);
  if (i == n) return;
  HWY_ALIGN T rest[HWY_MAX_BYTES / sizeof(T)] = {};
  for (int64_t j = i; j < n; ++j) rest[j - i] = x[j];
  hn::Store(F::call(d, hn::Load(d, rest)), d, rest);
  for (int64_t j = i; j < n; ++j) out[j] = rest[j - i];
}

template <class F, class T>
const char* vector_loop(char* const* p, const int64_t* s, int64_t n) {
  constexpr int64_t kItem = sizeof(T);
  if (s[0] == kItem && s[1] == kItem) {
    map_contiguous<F>(reinterpret_cast<const T*>(p[1]), reinterpret_cast<T*>(p[0]), n);
    return nullptr;
  }
  constexpr int64_t kBlock = 64;
  T block[kBlock];
  for (int64_t at = 0; at < n; at += kBlock) {
    const int64_t count = n - at < kBlock ? n - at : kBlock;
    for (int64_t i = 0; i < count; ++i) block[i] = *reinterpret_cast<const T*>(p[1] + (at + i) * s[1]);
    map_contiguous<F>(block, block, count);
    for (int64_t i = 0; i < count; ++i) *reinterpret_cast<T*>(p[0] + (at + i) * s[0]) = block[i];
  }
  return nullptr;
}

template <class F, class T, bool kFixedX, bool kFixedY>
HWY_INLINE void map_pairs(const T* x, const T* y, T* out, int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto first = hn::Set(d, *x), second = hn::Set(d, *y);
  const auto at = [&](int64_t i) HWY_ATTR {
    if constexpr (kFixedX) return F::call(d, first, hn::LoadU(d, y + i));
    if constexpr (kFixedY) return F::call(d, hn::LoadU(d, x + i), second);
    if constexpr (!kFixedX && !kFixedY) return F::call(d, hn::LoadU(d, x + i), hn::LoadU(d, y + i));
  };
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(at(i), d, out + i);
  if (i == n) return;
  HWY_ALIGN T a[HWY_MAX_BYTES / sizeof(T)];
  HWY_ALIGN T b[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(first, d, a);
  hn::Store(second, d, b);
  for (int64_t j = i; j < n; ++j) {
    if constexpr (!kFixedX) a[j - i] = x[j];
    if constexpr (!kFixedY) b[j - i] = y[j];
  }
  hn::Store(F::call(d, hn::Load(d, a), hn::Load(d, b)), d, a);
  for (int64_t j = i; j < n; ++j) out[j] = a[j - i];
}

template <class F, class T>
const char* vector_pair_loop(char* const* p, const int64_t* s, int64_t n) {
  constexpr int64_t kItem = sizeof(T);
  T* out = reinterpret_cast<T*>(p[0]);
  const T *x = reinterpret_cast<const T*>(p[1]), *y = reinterpret_cast<const T*>(p[2]);
  if (s[0] == kItem && s[1] == kItem && s[2] == kItem) {
    map_pairs<F, T, false, false>(x, y, out, n);
  } else if (s[0] == kItem && s[1] == kItem && s[2] == 0) {
    map_pairs<F, T, false, true>(x, y, out, n);
  } else if (s[0] == kItem && s[1] == 0 && s[2] == kItem) {
    map_pairs<F, T, true, false>(x, y, out, n);
  } else {
    constexpr int64_t kBlock = 64;
    T a[kBlock], b[kBlock];
    for (int64_t at = 0; at < n; at += kBlock) {
      const int64_t count = n - at < kBlock ? n - at : kBlock;
      for (int64_t i = 0; i < count; ++i) a[i] = *reinterpret_cast<const T*>(p[1] + (at + i) * s[1]);
      for (int64_t i = 0; i < count; ++i) b[i] = *reinterpret_cast<const T*>(p[2] + (at + i) * s[2]);
      map_pairs<F, T, false, false>(a, b, a, count);
      for (int64_t i = 0; i < count; ++i) *reinterpret_cast<T*>(p[0] + (at + i) * s[0]) = a[i];
    }
  }
  return nullptr;
}

template <class F>
void fill_vector(Elementwise& t) {
  t.inner[BP_FLOAT32] = vector_loop<F, float>;
  t.inner[BP_FLOAT64] = vector_loop<F, double>;
  fill_fused_halves<F, 1, 0>(t);
  t.grain = kFunctionGrain;
}
template <class F>
void fill_vector_pairs(Elementwise& t) {
  t.inner[BP_FLOAT32] = vector_pair_loop<F, float>;
  t.inner[BP_FLOAT64] = vector_pair_loop<F, double>;
  fill_fused_halves<F, 2, 0>(t);
  t.grain = kFunctionGrain;
}
template <class F, class ComplexOp>
void fill_vector_and_complex(Elementwise& t) {
  fill_vector<F>(t);
  fill_unary_complex<ComplexOp>(t);
}
template <class Op, class ComplexOp>
void fill_plain(Elementwise& t) {
  fill_unary_floats<Op>(t);
  fill_unary_complex<ComplexOp>(t);
  t.grain = kCostlyGrain;
}

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();
#endif
