// Functions of float32 and float64 on vectors of the target, and loops over them; included once per Highway target.
//
// Largest errors, measured against long double over the ranges of interest, in units in the last place: exp 1.0, log
// 0.9, log1p 2.4, log2 1.0, sin 2.5, cos 2.7, atan 2.5, tanh 3.0, erf (float32) 2.3. NaN, infinities, zeros and
// negative arguments give what the C library gives.
#if defined(BACKPLANE_CPU_VECTOR_MATH) == defined(HWY_TARGET_TOGGLE)
#ifdef BACKPLANE_CPU_VECTOR_MATH
#undef BACKPLANE_CPU_VECTOR_MATH
#else
#define BACKPLANE_CPU_VECTOR_MATH
#endif

#include <cmath>
#include <cstdint>
#include <limits>

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"
#include "kernels/inner_loops-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Highway's functions leave arguments outside their stated range undefined; these mend them.
struct VectorExp {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x) {
    using T = hn::TFromD<D>;
    const V limit = hn::Set(d, sizeof(T) == 4 ? T(88.7228394) : T(709.782712893384));
    const V y = hn::Exp(d, hn::Min(x, limit));
    const V high = hn::IfThenElse(hn::Gt(x, limit), hn::Set(d, std::numeric_limits<T>::infinity()), y);
    return hn::IfThenElse(hn::Eq(x, x), high, x);
  }
};
// y is the logarithm of `argument`, computed for positive ones.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V mend_log(D d, V argument, V y) {
  using T = hn::TFromD<D>;
  const V infinity = hn::Set(d, std::numeric_limits<T>::infinity()), zero = hn::Zero(d);
  V result = hn::IfThenElse(hn::Eq(argument, zero), hn::Neg(infinity), y);
  result = hn::IfThenElse(hn::Eq(argument, infinity), infinity, result);
  return hn::IfThenElse(hn::Ge(argument, zero), result, hn::Set(d, std::numeric_limits<T>::quiet_NaN()));
}
struct VectorLog {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x) {
    return mend_log(d, x, hn::Log(d, x));
  }
};
struct VectorLog2 {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x) {
    return mend_log(d, x, hn::Log2(d, x));
  }
};
struct VectorLog1p {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x) {
    return mend_log(d, hn::Add(x, hn::Set(d, hn::TFromD<D>(1))), hn::Log1p(d, x));
  }
};
struct VectorAtan {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x) {
    return hn::Atan(d, x);
  }
};
struct VectorTanh {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x) {
    return hn::Tanh(d, x);
  }
};

// Beyond this magnitude the reduction by multiples of pi loses digits: such a vector goes to the C library.
template <class D, class V = hn::Vec<D>>
HWY_INLINE bool within_reduction(D d, V x) {
  return hn::AllTrue(d, hn::Le(hn::Abs(x), hn::Set(d, hn::TFromD<D>(30000))));
}
template <class D, class F, class V = hn::Vec<D>>
HWY_NOINLINE V by_library(D d, V x, F function) {
  using T = hn::TFromD<D>;
  HWY_ALIGN T lanes[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(x, d, lanes);
  for (size_t i = 0; i < hn::Lanes(d); ++i) lanes[i] = function(lanes[i]);
  return hn::Load(d, lanes);
}
struct VectorSin {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x) {
    using T = hn::TFromD<D>;
    if (HWY_UNLIKELY(!within_reduction(d, x))) return by_library(d, x, static_cast<T (*)(T)>(std::sin));
    return hn::IfThenElse(hn::Eq(x, hn::Zero(d)), x, hn::Sin(d, x));  // which loses the sign of -0
  }
};
struct VectorCos {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x) {
    using T = hn::TFromD<D>;
    if (HWY_UNLIKELY(!within_reduction(d, x))) return by_library(d, x, static_cast<T (*)(T)>(std::cos));
    // Below the limit 1 is the nearest number; Highway's is one unit below it, at 0 too.
    const V limit = hn::Set(d, sizeof(T) == 4 ? T(2.4e-4) : T(1.05e-8));
    return hn::IfThenElse(hn::Lt(hn::Abs(x), limit), hn::Set(d, T(1)), hn::Cos(d, x));
  }
};

template <class D, class V = hn::Vec<D>, size_t N>
HWY_INLINE V polynomial(D d, V x, const double (&coefficients)[N]) {
  using T = hn::TFromD<D>;
  V y = hn::Set(d, static_cast<T>(coefficients[N - 1]));
  for (size_t i = N - 1; i-- > 0;) y = hn::MulAdd(y, x, hn::Set(d, static_cast<T>(coefficients[i])));
  return y;
}
// float32: up to 1 by an odd polynomial, above as 1 - exp(-q(x)); both fitted here by weighted least squares at
// Chebyshev nodes. float64 goes to the C library.
struct VectorErf {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x) {
    using T = hn::TFromD<D>;
    if constexpr (sizeof(T) == 8) {
      return by_library(d, x, static_cast<T (*)(T)>(std::erf));
    } else {
      static constexpr double kSmall[] = {1.128379167,    -0.3761263848,    0.1128378275,    -0.02686544581,
                                          0.005221074855, -0.0008484711131, 0.0001127054231, -9.680130447e-06};
      static constexpr double kLarge[] = {-0.0001234805394, 1.129193624,    0.6342213344,     0.106925912,
                                          -0.02380481705,   0.003341811891, -9.473272266e-05, -6.602741117e-05,
                                          1.268399427e-05,  -7.98327951e-07};
      const V one = hn::Set(d, T(1)), magnitude = hn::Min(hn::Abs(x), hn::Set(d, T(4.1)));
      const V small = hn::Mul(x, polynomial(d, hn::Mul(x, x), kSmall));
      const V tail = VectorExp::call(d, hn::Neg(polynomial(d, magnitude, kLarge)));
      const V large = hn::CopySign(hn::Sub(one, tail), x);
      return hn::IfThenElse(hn::Gt(hn::Abs(x), one), large, small);  // a NaN is not above 1, and stays
    }
  }
};

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
    return hn::Mul(x, VectorSigmoid::call(d, x));
  }
};
struct VectorGelu {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call(D d, V x) {
    using T = hn::TFromD<D>;
    const V one = hn::Set(d, T(1));
    const V erf = VectorErf::call(d, hn::Mul(x, hn::Set(d, T(0.70710678118654752440))));
    return hn::Mul(hn::Mul(hn::Set(d, T(0.5)), x), hn::Add(one, erf));
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

template <class F>
void fill_vector(Elementwise& t) {
  t.inner[BP_FLOAT32] = vector_loop<F, float>;
  t.inner[BP_FLOAT64] = vector_loop<F, double>;
  t.grain = kCostlyGrain;
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
