// Vectors of elements that are narrower in memory: half floats become float32 on the way in and are rounded on the
// way out. Included once per Highway target.
#if defined(BACKPLANE_CPU_HALF_VECTORS) == defined(HWY_TARGET_TOGGLE)
#ifdef BACKPLANE_CPU_HALF_VECTORS
#undef BACKPLANE_CPU_HALF_VECTORS
#else
#define BACKPLANE_CPU_HALF_VECTORS
#endif

#include <cstdint>

#include "backplane/plugin.hpp"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Lanes(d) elements; d is of the type that they are computed in.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> widen(D d, const T* x) {
  return hn::LoadU(d, x);
}
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void narrow(D d, hn::Vec<D> x, T* out) {
  hn::StoreU(x, d, out);
}
#if (HWY_ARCH_X86 && HWY_TARGET > HWY_AVX2) || HWY_TARGET == HWY_EMU128 || HWY_TARGET == HWY_SCALAR
// No instruction converts float16 here, and Highway's conversion does not round, and loses NaN and infinity. Moved into
// place, exponent and fraction make a float32 that is 2^-112 of the value, for subnormals too.
template <class D>
HWY_INLINE hn::Vec<D> widen(D d, const plugin::float16* x) {
  const hn::Rebind<uint16_t, D> dh;
  const hn::RebindToUnsigned<D> du;
  const auto bits = hn::PromoteTo(du, hn::LoadU(dh, reinterpret_cast<const uint16_t*>(x)));
  const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(du, 0x8000u)));
  const auto rest = hn::ShiftLeft<13>(hn::And(bits, hn::Set(du, 0x7fffu)));
  const auto finite = hn::BitCast(du, hn::Mul(hn::BitCast(d, rest), hn::Set(d, 0x1p112f)));
  const auto special = hn::Or(rest, hn::Set(du, 0x7f800000u));
  const auto is_special = hn::Gt(rest, hn::Set(du, (0x7c00u << 13) - 1));
  return hn::BitCast(d, hn::Or(sign, hn::IfThenElse(is_special, special, finite)));
}
// To nearest, ties to even. A subnormal result is rounded by an addition: the last bit of 0.5 is as much as its own.
template <class D>
HWY_INLINE void narrow(D d, hn::Vec<D> x, plugin::float16* out) {
  const hn::Rebind<uint16_t, D> dh;
  const hn::RebindToUnsigned<D> du;
  const hn::RebindToSigned<D> di;
  const auto bits = hn::BitCast(du, x), sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 0x8000u));
  const auto size = hn::And(bits, hn::Set(du, 0x7fffffffu)), half = hn::Set(du, 0x3f000000u);
  const auto odd = hn::And(hn::ShiftRight<13>(size), hn::Set(du, 1u));
  const auto moved = hn::Sub(hn::Add(hn::Add(size, hn::Set(du, 0xfffu)), odd), hn::Set(du, 112u << 23));
  const auto tiny = hn::Sub(hn::BitCast(du, hn::Add(hn::BitCast(d, size), hn::BitCast(d, half))), half);
  const auto quiet = hn::Or(hn::And(hn::ShiftRight<13>(size), hn::Set(du, 0x3ffu)), hn::Set(du, 0x7e00u));
  auto result = hn::IfThenElse(hn::Lt(size, hn::Set(du, 113u << 23)), tiny, hn::ShiftRight<13>(moved));
  result = hn::IfThenElse(hn::Gt(size, hn::Set(du, 0x477fefffu)), hn::Set(du, 0x7c00u), result);
  result = hn::Or(sign, hn::IfThenElse(hn::Gt(size, hn::Set(du, 0x7f800000u)), quiet, result));
  // Within 16 bits as a signed number, which is what narrows here without saturating.
  const auto wrapped = hn::ShiftRight<16>(hn::BitCast(di, hn::ShiftLeft<16>(result)));
  const hn::Rebind<int16_t, D> ds;
  hn::StoreU(hn::BitCast(dh, hn::DemoteTo(ds, wrapped)), dh, reinterpret_cast<uint16_t*>(out));
}
#else
template <class D>
HWY_INLINE hn::Vec<D> widen(D d, const plugin::float16* x) {
  const hn::Rebind<hwy::float16_t, D> dh;
  return hn::PromoteTo(d, hn::LoadU(dh, reinterpret_cast<const hwy::float16_t*>(x)));
}
template <class D>
HWY_INLINE void narrow(D, hn::Vec<D> x, plugin::float16* out) {
  const hn::Rebind<hwy::float16_t, D> dh;
  hn::StoreU(hn::DemoteTo(dh, x), dh, reinterpret_cast<hwy::float16_t*>(out));
}
#endif
template <class D>
HWY_INLINE hn::Vec<D> widen(D d, const plugin::bfloat16* x) {
  const hn::Rebind<uint16_t, D> dh;
  const hn::RebindToUnsigned<D> du;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, hn::LoadU(dh, reinterpret_cast<const uint16_t*>(x)))));
}
// To nearest, ties to even; a NaN keeps its quiet bit.
template <class D>
HWY_INLINE void narrow(D d, hn::Vec<D> x, plugin::bfloat16* out) {
  const hn::Rebind<uint16_t, D> dh;
  const hn::RebindToUnsigned<D> du;
  const hn::RebindToSigned<D> di;
  const auto bits = hn::BitCast(du, x), upper = hn::ShiftRight<16>(bits);
  const auto odd = hn::And(upper, hn::Set(du, 1u));
  const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7fffu))));
  const auto quiet = hn::Or(upper, hn::Set(du, 0x40u));
  const auto chosen = hn::IfThenElse(hn::Eq(x, x), hn::BitCast(d, rounded), hn::BitCast(d, quiet));
  hn::StoreU(hn::DemoteTo(dh, hn::BitCast(di, chosen)), dh, reinterpret_cast<uint16_t*>(out));
}

// Two vectors of neighbours at once, in whatever order is cheap; narrow_pair restores it. For bfloat16 the even
// elements and the odd ones. Results computed from half floats never are the NaN whose bits rounding would carry away.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void widen_pair(D d, const hn::TFromD<D>* x, V& a, V& b) {
  a = widen(d, x);
  b = widen(d, x + hn::Lanes(d));
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE void widen_pair(D d, const plugin::float16* x, V& a, V& b) {
  a = widen(d, x);
  b = widen(d, x + hn::Lanes(d));
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE void narrow_pair(D d, V a, V b, hn::TFromD<D>* out) {
  hn::StoreU(a, d, out);
  hn::StoreU(b, d, out + hn::Lanes(d));
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE void narrow_pair(D d, V a, V b, plugin::float16* out) {
  narrow(d, a, out);
  narrow(d, b, out + hn::Lanes(d));
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE void widen_pair(D d, const plugin::bfloat16* x, V& a, V& b) {
  const hn::RebindToUnsigned<D> du;
  const auto both = hn::LoadU(du, reinterpret_cast<const uint32_t*>(x));
  a = hn::BitCast(d, hn::ShiftLeft<16>(both));
  b = hn::BitCast(d, hn::And(both, hn::Set(du, 0xffff0000u)));
}
#if HWY_TARGET == HWY_SCALAR
template <class D, class V = hn::Vec<D>>
HWY_INLINE void narrow_pair(D d, V a, V b, plugin::bfloat16* out) {
  narrow(d, a, out);
  narrow(d, b, out + 1);
}
#else
// The upper halves of a and b, rounded, by turns: a0 b0 a1 b1 ... A half is rounded up if the part cut off, less 1
// if the half is even, has its highest bit set.
template <class D, class V = hn::Vec<D>, class D16 = hn::Repartition<uint16_t, D>>
HWY_INLINE hn::Vec<D16> rounded_halves(D d, V a, V b) {
  const D16 d16;
  const hn::RebindToUnsigned<D> du;
  const auto even = hn::BitCast(du, a), odd = hn::BitCast(du, b);
  const auto upper = hn::OddEven(hn::BitCast(d16, odd), hn::BitCast(d16, hn::ShiftRight<16>(even)));
  const auto lower = hn::OddEven(hn::BitCast(d16, hn::ShiftLeft<16>(odd)), hn::BitCast(d16, even));
  const auto is_even = hn::AndNot(upper, hn::Set(d16, uint16_t{1}));
  return hn::Add(upper, hn::ShiftRight<15>(hn::SaturatedSub(lower, is_even)));
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE void narrow_pair(D d, V a, V b, plugin::bfloat16* out) {
  const hn::Repartition<uint16_t, D> d16;
  hn::StoreU(rounded_halves(d, a, b), d16, reinterpret_cast<uint16_t*>(out));
}
#endif

// The same where a half float holds each element exactly: rounding bfloat16 is most of the work of a cheap function.
template <class D, class V = hn::Vec<D>, class S>
HWY_INLINE void narrow_exact_pair(D d, V a, V b, S* out) {
  narrow_pair(d, a, b, out);
}
#if HWY_TARGET != HWY_SCALAR
template <class D, class V = hn::Vec<D>>
HWY_INLINE void narrow_exact_pair(D d, V a, V b, plugin::bfloat16* out) {
  const hn::Repartition<uint16_t, D> d16;
  const auto even = hn::ShiftRight<16>(hn::BitCast(hn::RebindToUnsigned<D>(), a));
  hn::StoreU(hn::OddEven(hn::BitCast(d16, b), hn::BitCast(d16, even)), d16, reinterpret_cast<uint16_t*>(out));
}
#endif

// Two vectors of neighbours in their order: their neighbours in memory are of another type.
template <class D, class V = hn::Vec<D>, class S>
HWY_INLINE void narrow_two(D d, V a, V b, S* out) {
  narrow(d, a, out);
  narrow(d, b, out + hn::Lanes(d));
}
#if HWY_TARGET != HWY_SCALAR
template <class D, class V = hn::Vec<D>>
HWY_INLINE void narrow_two(D d, V a, V b, plugin::bfloat16* out) {
  const hn::Repartition<uint16_t, D> d16;
  const hn::RebindToUnsigned<D> du;
  const auto rounded = [&](V v) HWY_ATTR {
    const auto bits = hn::BitCast(du, v), odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1u));
    return hn::BitCast(d16, hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7fffu))));
  };
  hn::StoreU(hn::ConcatOdd(d16, rounded(b), rounded(a)), d16, reinterpret_cast<uint16_t*>(out));
}
#endif

// Halves `stride` bytes apart into a row, which the loops above can take. Every second one is common enough for a loop
// of its own, which the compiler vectorises; the others go four at a time.
HWY_INLINE void gather_halves(const char* from, int64_t stride, uint16_t* row, int64_t n) {
  const auto* x = reinterpret_cast<const uint16_t*>(from);
  if (stride == 2)
    for (int64_t i = 0; i < n; ++i) row[i] = x[i];
  else if (stride == 4)
    for (int64_t i = 0; i < n; ++i) row[i] = x[2 * i];
  if (stride == 2 || stride == 4) return;
  const auto at = [&](int64_t i) { return *reinterpret_cast<const uint16_t*>(from + i * stride); };
  int64_t i = 0;
  for (; i + 4 <= n; i += 4, from += 4 * stride) {
    const uint16_t a = at(0), b = at(1), c = at(2), d = at(3);
    row[i] = a, row[i + 1] = b, row[i + 2] = c, row[i + 3] = d;
  }
  for (; i < n; ++i, from += stride) row[i] = at(0);
}

// The same for loops that serve both types: a branch per pair costs less than a function compiled twice.
enum class Half { kFloat16, kBfloat16 };
template <class D, class V = hn::Vec<D>>
HWY_INLINE void widen_pair(D d, Half type, const uint16_t* x, V& a, V& b) {
  if (type == Half::kFloat16)
    widen_pair(d, reinterpret_cast<const plugin::float16*>(x), a, b);
  else
    widen_pair(d, reinterpret_cast<const plugin::bfloat16*>(x), a, b);
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE void narrow_pair(D d, Half type, V a, V b, uint16_t* out) {
  if (type == Half::kFloat16)
    narrow_pair(d, a, b, reinterpret_cast<plugin::float16*>(out));
  else
    narrow_pair(d, a, b, reinterpret_cast<plugin::bfloat16*>(out));
}

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();
#endif
