// sqrt on vectors of float32 and float64, rounded correctly; included once per Highway target.
#if defined(BACKPLANE_CPU_VECTOR_SQRT) == defined(HWY_TARGET_TOGGLE)
#ifdef BACKPLANE_CPU_VECTOR_SQRT
#undef BACKPLANE_CPU_VECTOR_SQRT
#else
#define BACKPLANE_CPU_VECTOR_SQRT
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

struct VectorSqrt {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V call([[maybe_unused]] D d, V x) {
#if HWY_TARGET <= HWY_AVX3
    if constexpr (sizeof(hn::TFromD<D>) == 4) {
      const hn::RebindToUnsigned<D> du;
      // What the residual of a root needs: it must not underflow.
      constexpr uint32_t kLeast = 0x10000000, kInfinity = 0x7f800000;  // 2^-95
      const auto ordinary = hn::Lt(hn::Sub(hn::BitCast(du, x), hn::Set(du, kLeast)), hn::Set(du, kInfinity - kLeast));
      const auto zero = hn::Eq(x, hn::Zero(d));
      if (HWY_LIKELY(hn::AllTrue(du, hn::Or(ordinary, hn::RebindMask(du, zero))))) {
        return hn::IfThenElse(zero, x, of_ordinary(d, x));
      }
    }
#endif
    return hn::Sqrt(x);
  }

#if HWY_TARGET <= HWY_AVX3
  // Goldschmidt's step from 14 bits of 1 / sqrt(x), then the root's exact residual: on Intel's processors the bits of
  // the instruction, which takes up to twice as long there (P. Markstein, "IA-64 and elementary functions", 2000).
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V of_ordinary(D d, V x) {
    const V half = hn::Set(d, 0.5f), inverse = hn::ApproximateReciprocalSqrt(x);
    const V root = hn::Mul(x, inverse), half_inverse = hn::Mul(half, inverse);
    const V lack = hn::NegMulAdd(root, half_inverse, half);
    const V close = hn::MulAdd(root, lack, root);
    return hn::MulAdd(hn::NegMulAdd(close, close, x), hn::MulAdd(half_inverse, lack, half_inverse), close);
  }
#endif
};

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();
#endif
