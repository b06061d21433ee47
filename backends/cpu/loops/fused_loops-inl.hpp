// Loops over vector functions of one or two tensors and some numbers, in one pass; included once per Highway target.
//
// A function has `static HWY_INLINE V call(D d, V tensors..., V numbers...)`. Operands that are not contiguous are
// gathered block by block; the output may be exactly an input.
#if defined(BACKPLANE_CPU_FUSED_LOOPS) == defined(HWY_TARGET_TOGGLE)
#ifdef BACKPLANE_CPU_FUSED_LOOPS
#undef BACKPLANE_CPU_FUSED_LOOPS
#else
#define BACKPLANE_CPU_FUSED_LOOPS
#endif

#include <array>
#include <cstdint>
#include <utility>

#include "hwy/highway.h"
#include "loops/elementwise.hpp"
#include "simd/half_vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class F, class T, size_t... X, size_t... P>
HWY_INLINE void map_fused(std::array<const T*, sizeof...(X)> x, [[maybe_unused]] std::array<T, sizeof...(P)> numbers,
                          T* out, int64_t n, std::index_sequence<X...>, std::index_sequence<P...>) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(F::call(d, hn::LoadU(d, x[X] + i)..., hn::Set(d, numbers[P])...), d, out + i);
  if (i == n) return;
  HWY_ALIGN T rest[sizeof...(X)][HWY_MAX_BYTES / sizeof(T)] = {};
  for (size_t k = 0; k < sizeof...(X); ++k)
    for (int64_t j = i; j < n; ++j) rest[k][j - i] = x[k][j];
  hn::Store(F::call(d, hn::Load(d, rest[X])..., hn::Set(d, numbers[P])...), d, rest[0]);
  for (int64_t j = i; j < n; ++j) out[j] = rest[0][j - i];
}

template <class F, class T, int Tensors, int Numbers>
const char* fused_loop(char* const* p, const int64_t* s, int64_t n) {
  constexpr int64_t kItem = sizeof(T), kBlock = 256;
  const auto tensors = std::make_index_sequence<Tensors>();
  const auto count_numbers = std::make_index_sequence<Numbers>();
  std::array<T, Numbers> numbers;
  for (int i = 0; i < Numbers; ++i) numbers[i] = *reinterpret_cast<const T*>(p[Tensors + 1 + i]);
  std::array<const T*, Tensors> x;
  bool contiguous = s[0] == kItem;
  for (int k = 0; k < Tensors; ++k) {
    x[k] = reinterpret_cast<const T*>(p[k + 1]);
    contiguous = contiguous && s[k + 1] == kItem;
  }
  if (contiguous) {
    map_fused<F, T>(x, numbers, reinterpret_cast<T*>(p[0]), n, tensors, count_numbers);
    return nullptr;
  }
  HWY_ALIGN T blocks[Tensors + 1][kBlock];
  for (int64_t at = 0; at < n; at += kBlock) {
    const int64_t count = n - at < kBlock ? n - at : kBlock;
    for (int k = 0; k < Tensors; ++k) {
      const char* from = p[k + 1] + at * s[k + 1];
      x[k] = s[k + 1] == kItem ? reinterpret_cast<const T*>(from) : blocks[k + 1];
      if (s[k + 1] != kItem)
        for (int64_t i = 0; i < count; ++i) blocks[k + 1][i] = *reinterpret_cast<const T*>(from + i * s[k + 1]);
    }
    char* to = p[0] + at * s[0];
    T* out = s[0] == kItem ? reinterpret_cast<T*>(to) : blocks[0];
    map_fused<F, T>(x, numbers, out, count, tensors, count_numbers);
    if (s[0] != kItem)
      for (int64_t i = 0; i < count; ++i) *reinterpret_cast<T*>(to + i * s[0]) = blocks[0][i];
  }
  return nullptr;
}

// Half floats, two vectors at a time, for n of whole pairs; numbers beside them are float32. Operand k moves on by
// advance[k] elements from pair to pair: a number is an array of equals that stays.
using HalfPairs = void (*)(Half type, const uint16_t* const* x, const int64_t* advance, char* const* numbers,
                           uint16_t* out, int64_t n);
template <class F, size_t... X, size_t... P>
HWY_INLINE void map_half_pairs(Half type, const uint16_t* const* x, const int64_t* advance,
                               [[maybe_unused]] char* const* numbers, uint16_t* out, int64_t n,
                               std::index_sequence<X...>, std::index_sequence<P...>) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const auto step = static_cast<int64_t>(2 * hn::Lanes(d));
  // Read before the loop, whose stores the compiler takes for changes of them.
  const uint16_t* from[] = {x[X]...};
  const int64_t moves[] = {advance[X]...};
  [[maybe_unused]] const std::array<float, sizeof...(P)> factors{*reinterpret_cast<const float*>(numbers[P])...};
  for (int64_t at = 0; at < n; at += step) {
    V a[sizeof...(X)], b[sizeof...(X)];
    (widen_pair(d, type, from[X], a[X], b[X]), ...);
    ((from[X] += moves[X]), ...);
    const V y = F::call(d, a[X]..., hn::Set(d, factors[P])...), z = F::call(d, b[X]..., hn::Set(d, factors[P])...);
    narrow_pair(d, type, y, z, out + at);
  }
}
template <class F, int Tensors, int Numbers>
void half_pairs_of(Half type, const uint16_t* const* x, const int64_t* advance, char* const* numbers, uint16_t* out,
                   int64_t n) {
  map_half_pairs<F>(type, x, advance, numbers, out, n, std::make_index_sequence<Tensors>(),
                    std::make_index_sequence<Numbers>());
}

// Strided elements, and the end, go through small arrays, filled up with the last element.
template <int Tensors>
HWY_NOINLINE void half_blocks(HalfPairs pairs, Half type, char* const* p, const int64_t* s, int64_t n) {
  constexpr int64_t kItem = sizeof(uint16_t), kBlock = 256;
  const hn::ScalableTag<uint16_t> d16;
  const auto step = static_cast<int64_t>(2 * hn::Lanes(hn::ScalableTag<float>()));
  uint16_t blocks[Tensors + 1][kBlock];
  const uint16_t* x[Tensors];
  int64_t advance[Tensors];
  bool whole = s[0] == kItem;
  for (int k = 0; k < Tensors; ++k) {
    x[k] = reinterpret_cast<const uint16_t*>(p[k + 1]);
    advance[k] = s[k + 1] == 0 ? 0 : step;
    whole = whole && (s[k + 1] == kItem || s[k + 1] == 0);
    if (s[k + 1] != 0) continue;
    // By vectors: a load of one would wait for smaller stores.
    for (int64_t i = 0; i < step; i += static_cast<int64_t>(hn::Lanes(d16)))
      hn::StoreU(hn::Set(d16, *x[k]), d16, blocks[k + 1] + i);
    x[k] = blocks[k + 1];
  }
  int64_t at = 0;
  if (whole) {
    at = n / step * step;
    pairs(type, x, advance, p + Tensors + 1, reinterpret_cast<uint16_t*>(p[0]), at);
  }
  for (; at < n; at += kBlock) {
    const int64_t count = n - at < kBlock ? n - at : kBlock, filled = (count + step - 1) / step * step;
    for (int k = 0; k < Tensors; ++k) {
      if (s[k + 1] == 0) continue;
      gather_halves(p[k + 1] + at * s[k + 1], s[k + 1], blocks[k + 1], count);
      for (int64_t i = count; i < filled; ++i) blocks[k + 1][i] = blocks[k + 1][count - 1];
      x[k] = blocks[k + 1];
    }
    char* to = p[0] + at * s[0];
    const bool direct = s[0] == kItem && filled == count;
    pairs(type, x, advance, p + Tensors + 1, direct ? reinterpret_cast<uint16_t*>(to) : blocks[0], filled);
    if (direct) continue;
    for (int64_t i = 0; i < count; ++i) *reinterpret_cast<uint16_t*>(to + i * s[0]) = blocks[0][i];
  }
}
template <class F, int Tensors, int Numbers, Half Type>
const char* half_fused_loop(char* const* p, const int64_t* s, int64_t n) {
  half_blocks<Tensors>(half_pairs_of<F, Tensors, Numbers>, Type, p, s, n);
  return nullptr;
}
template <class F, int Tensors, int Numbers>
void fill_fused_halves(Elementwise& table) {
  table.inner[BP_FLOAT16] = half_fused_loop<F, Tensors, Numbers, Half::kFloat16>;
  table.inner[BP_BFLOAT16] = half_fused_loop<F, Tensors, Numbers, Half::kBfloat16>;
}

template <class F, int Tensors, int Numbers, int64_t kGrain>
void fill_fused(Elementwise& table) {
  table.inner[BP_FLOAT32] = fused_loop<F, float, Tensors, Numbers>;
  table.inner[BP_FLOAT64] = fused_loop<F, double, Tensors, Numbers>;
  fill_fused_halves<F, Tensors, Numbers>(table);
  table.grain = kGrain;
}

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();
#endif
