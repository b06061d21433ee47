// See positions.hpp. A position p is out of range where p or size - 1 - p has its sign bit set: no comparison is
// needed, and a difference that overflows comes from a negative p.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/indexing/positions.cpp"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <tuple>

#include "kernels/indexing/positions.hpp"
#include "simd/chosen_table.hpp"

// The loops behind take_inside, from a table in the first cache and from any.
#ifndef BACKPLANE_CPU_TAKE_TABLE
#define BACKPLANE_CPU_TAKE_TABLE
namespace backplane::cpu {
template <class Item>
struct TakeLoop {
  int64_t (*near)(const Item* x, int64_t size, const int64_t* positions, int64_t n, Item* out);
  int64_t (*far)(const Item* x, int64_t size, const int64_t* positions, int64_t n, Item* out);
};
using TakeTable =
    std::tuple<TakeLoop<uint8_t>, TakeLoop<uint16_t>, TakeLoop<uint32_t>, TakeLoop<uint64_t>, TakeLoop<Item16>>;
}  // namespace backplane::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

bool inside(const int64_t* positions, int64_t n, int64_t size) {
  const hn::ScalableTag<int64_t> d;
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  const auto last = hn::Set(d, size - 1);
  auto signs = hn::Zero(d), more = signs;
  int64_t i = 0;
  for (; i + 2 * step <= n; i += 2 * step) {
    const auto p = hn::LoadU(d, positions + i), q = hn::LoadU(d, positions + i + step);
    signs = hn::Or(signs, hn::Or(p, hn::Sub(last, p)));
    more = hn::Or(more, hn::Or(q, hn::Sub(last, q)));
  }
  uint64_t rest = 0;
  for (; i < n; ++i)
    rest |=
        static_cast<uint64_t>(positions[i]) | (static_cast<uint64_t>(size - 1) - static_cast<uint64_t>(positions[i]));
  return rest >> 63 == 0 && hn::AllFalse(d, hn::Lt(hn::Or(signs, more), hn::Zero(d)));
}

template <int64_t Count>
HWY_INLINE bool group_inside(const int64_t* positions, int64_t size) {
  const hn::CappedTag<int64_t, static_cast<size_t>(Count)> d;
  const auto last = hn::Set(d, size - 1);
  auto signs = hn::Zero(d);
  for (int64_t k = 0; k < Count; k += static_cast<int64_t>(hn::Lanes(d))) {
    const auto p = hn::LoadU(d, positions + k);
    signs = hn::Or(signs, hn::Or(p, hn::Sub(last, p)));
  }
  return hn::AllFalse(d, hn::Lt(signs, hn::Zero(d)));
}

// Each group is checked just before it is read: a pass over all positions first would leave the memory idle meanwhile.
// They are asked for 2 KiB ahead, since the processor's own look-ahead ends with a page.
template <class Item>
int64_t take_near(const Item* x, int64_t size, const int64_t* positions, int64_t n, Item* out) {
  constexpr int64_t kGroup = 16, kHalf = 8, kAhead = 256;
  int64_t i = 0;
  for (; i + kGroup <= n; i += kGroup) {
    hwy::Prefetch(positions + i + kAhead);
    hwy::Prefetch(positions + i + kAhead + kHalf);
    if (!group_inside<kGroup>(positions + i, size)) break;
    for (int64_t first = i; first < i + kGroup; first += kHalf) {
      Item some[kHalf];
      for (int64_t k = 0; k < kHalf; ++k) some[k] = x[positions[first + k]];
      for (int64_t k = 0; k < kHalf; ++k) out[first + k] = some[k];
    }
  }
  return i;
}

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
// The positions of one vector of items: those of 32 bits are narrowed, which the caller's size allows.
HWY_INLINE auto indices_of(hn::ScalableTag<uint32_t>, const int64_t* positions) {
  const hn::ScalableTag<int64_t> d;
  const hn::ScalableTag<int32_t> narrow;
  const auto low = hn::LoadU(d, positions), high = hn::LoadU(d, positions + hn::Lanes(d));
  return hn::ConcatEven(narrow, hn::BitCast(narrow, high), hn::BitCast(narrow, low));
}
HWY_INLINE auto indices_of(hn::ScalableTag<uint64_t>, const int64_t* positions) {
  return hn::LoadU(hn::ScalableTag<int64_t>(), positions);
}

// Two vectors are read before either is written.
template <class Item>
int64_t take_far(const Item* x, int64_t size, const int64_t* positions, int64_t n, Item* out) {
  const hn::ScalableTag<Item> items;
  constexpr auto kStep = static_cast<int64_t>(hn::MaxLanes(items));
  int64_t i = 0;
  for (; i + 2 * kStep <= n; i += 2 * kStep) {
    if (!group_inside<2 * kStep>(positions + i, size)) break;
    const auto low = hn::GatherIndex(items, x, indices_of(items, positions + i));
    const auto high = hn::GatherIndex(items, x, indices_of(items, positions + i + kStep));
    hn::StoreU(low, items, out + i);
    hn::StoreU(high, items, out + i + kStep);
  }
  return i;
}
#endif

template <class Item>
void fill_take(TakeLoop<Item>& loop) {
  loop = {take_near<Item>, take_near<Item>};
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  if constexpr (sizeof(Item) == 4 || sizeof(Item) == 8) loop.far = take_far<Item>;
#endif
}
void fill_takes(TakeTable& table) {
  std::apply([](auto&... loops) { (fill_take(loops), ...); }, table);
}

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::cpu {
HWY_EXPORT(inside);
HWY_EXPORT(fill_takes);

bool all_inside(const int64_t* positions, int64_t n, int64_t size) {
  return HWY_DYNAMIC_DISPATCH(inside)(positions, n, size);
}

template <class Item>
int64_t take_inside(const Item* x, int64_t size, const int64_t* positions, int64_t n, Item* out) {
  constexpr int64_t kNearBytes = 32768;  // of the first cache, from which vectors read no faster
  const auto& loop = std::get<TakeLoop<Item>>(chosen_table<TakeTable>([](TakeTable& t) {
    HWY_DYNAMIC_DISPATCH(fill_takes)
    (t);
  }));
  const bool far = size > kNearBytes / int64_t{sizeof(Item)} && size <= int64_t{1} << 31;
  return (far ? loop.far : loop.near)(x, size, positions, n, out);
}
template int64_t take_inside(const uint8_t*, int64_t, const int64_t*, int64_t, uint8_t*);
template int64_t take_inside(const uint16_t*, int64_t, const int64_t*, int64_t, uint16_t*);
template int64_t take_inside(const uint32_t*, int64_t, const int64_t*, int64_t, uint32_t*);
template int64_t take_inside(const uint64_t*, int64_t, const int64_t*, int64_t, uint64_t*);
template int64_t take_inside(const Item16*, int64_t, const int64_t*, int64_t, Item16*);

}  // namespace backplane::cpu
#endif
