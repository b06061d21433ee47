// The exponential of numbers up to 0, as softmax and attention take it; included once per Highway target.
#if defined(BACKPLANE_CPU_EXP_DOWN) == defined(HWY_TARGET_TOGGLE)
#ifdef BACKPLANE_CPU_EXP_DOWN
#undef BACKPLANE_CPU_EXP_DOWN
#else
#define BACKPLANE_CPU_EXP_DOWN
#endif

#include "hwy/highway.h"
#include "simd/vector_exp-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {

// exp(x) for x <= 0, 0 below the smallest normal result; any number for a NaN, whose lane is NaN by its scale.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp_down(D d, V x) {
  if constexpr (sizeof(hn::TFromD<D>) == 8) {
    return VectorExp::call(d, x);
  } else {
    // 2^k e^r with |r| <= ln(2) / 2; Cephes' polynomial, 1 unit in the last place.
    const hn::RebindToSigned<D> di;
    const V smallest = hn::Set(d, -87.33654f), magic = hn::Set(d, 12582912.0f);  // 1.5 * 2^23: adding it rounds
    const V bounded = hn::Max(x, smallest);
    const V shifted = hn::MulAdd(bounded, hn::Set(d, 1.44269504088896341f), magic);
    const V k = hn::Sub(shifted, magic);
    V r = hn::NegMulAdd(k, hn::Set(d, 0.693359375f), bounded);
    r = hn::NegMulAdd(k, hn::Set(d, -2.12194440e-4f), r);
    V p = hn::MulAdd(hn::Set(d, 1.9875691500e-4f), r, hn::Set(d, 1.3981999507e-3f));
    p = hn::MulAdd(p, r, hn::Set(d, 8.3334519073e-3f));
    p = hn::MulAdd(p, r, hn::Set(d, 4.1665795894e-2f));
    p = hn::MulAdd(p, r, hn::Set(d, 1.6666665459e-1f));
    p = hn::MulAdd(p, r, hn::Set(d, 5.0000001201e-1f));
    p = hn::Add(hn::MulAdd(p, hn::Mul(r, r), r), hn::Set(d, 1.0f));
    const V y = hn::BitCast(d, hn::Add(hn::BitCast(di, p), hn::ShiftLeft<23>(hn::BitCast(di, shifted))));
    return hn::IfThenElseZero(hn::Ge(x, smallest), y);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();

#endif
