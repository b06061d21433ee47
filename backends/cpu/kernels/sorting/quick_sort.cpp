// See quick_sort.hpp. A division reads vectors from both ends, always from the end with less room, so that the next
// vector's lanes fit at either end (Bramas, "A novel hybrid quicksort algorithm vectorized using
// AVX-512", 2017).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/sorting/quick_sort.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <utility>
#include <vector>

#include "kernels/sorting/quick_sort.hpp"
#include "kernels/sorting/short_sort.hpp"

#ifndef BACKPLANE_CPU_SORTING_ORDERS
#define BACKPLANE_CPU_SORTING_ORDERS
namespace backplane::cpu {
// For every mask of eight lanes: the numbers of its lanes, then of the other lanes, four bits each.
inline constexpr auto kOrders = [] {
  std::array<uint32_t, 256> orders{};
  for (uint32_t mask = 0; mask < 256; ++mask) {
    int place = 0;
    for (const uint32_t wanted : {1u, 0u})
      for (uint32_t lane = 0; lane < 8; ++lane)
        if ((mask >> lane & 1) == wanted) orders[mask] |= lane << 4 * place++;
  }
  return orders;
}();
}  // namespace backplane::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR || HWY_HAVE_SCALABLE
template <class Key>
int64_t divide(Key* keys, int64_t n, Key pivot) {
  return std::partition(keys, keys + n, [pivot](Key key) { return key <= pivot; }) - keys;
}
#else

// The lanes of `low` first; the others behind them, or anything.
template <class V, class Mask>
HWY_INLINE V low_lanes_first(V v, Mask low) {
  const hn::DFromV<V> d;
#if HWY_TARGET == HWY_AVX2  // where Highway 1.0.3 copies its table to the stack at each call
  const hn::Repartition<uint32_t, decltype(d)> d32;
  uint8_t bits[8];
  hn::StoreMaskBits(d32, hn::MaskFromVec(hn::BitCast(d32, hn::VecFromMask(d, low))), bits);
  const auto order = hn::Set(d32, kOrders[bits[0]]) >> (hn::Iota(d32, 0) << hn::Set(d32, 2));
  return hn::BitCast(
      d, hn::TableLookupLanes(hn::BitCast(d32, v), hn::IndicesFromVec(d32, hn::And(order, hn::Set(d32, 7)))));
#else
  return hn::Compress(v, low);
#endif
}

// There are more than 2 * kBlock keys.
template <class Key>
int64_t divide(Key* keys, int64_t n, Key pivot) {
  const hn::ScalableTag<Key> d;
  using V = hn::Vec<decltype(d)>;
  constexpr int kRows = 4;
  constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(d)), kBlock = kRows * kLanes;

  Key *left = keys, *right = keys + n;  // between them lies what has not been placed
  for (int64_t rest = n % kLanes; rest > 0; --rest)
    if (*left <= pivot)
      ++left;
    else
      std::swap(*left, *--right);

  const V pivots = hn::Set(d, pivot);
  // There is room for a vector at either end, or for one in all.
  const auto place = [&](V v) __attribute__((always_inline)) {
    const auto high = hn::Lt(pivots, v);
    const auto low = hn::Not(high);
    const auto count = static_cast<int64_t>(hn::CountTrue(d, low));
    const V moved = low_lanes_first(v, low);
    hn::StoreU(moved, d, left);
    if constexpr (hn::CompressIsPartition<Key>::value) {
      hn::StoreU(moved, d, right - kLanes);
    } else {
      const auto n_high = static_cast<size_t>(kLanes - count);
      hn::BlendedStore(hn::Compress(v, high), hn::FirstN(d, n_high), d, right - n_high);
    }
    left += count;
    right -= kLanes - count;
  };

  const Key *begin = left, *end = right;  // between them lies what has not been read
  const auto next = [&](int64_t size) __attribute__((always_inline)) {
    const bool from_end = right - end < begin - left;
    const Key* from = from_end ? end - size : begin;
    end -= from_end ? size : 0;
    begin += from_end ? 0 : size;
    return from;
  };
  V first[kRows], last[kRows], rows[kRows];
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) first[i] = hn::LoadU(d, begin + i * kLanes);
  begin += kBlock;
  end -= kBlock;
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) last[i] = hn::LoadU(d, end + i * kLanes);
  while (end - begin >= kBlock) {
    const Key* from = next(kBlock);
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) rows[i] = hn::LoadU(d, from + i * kLanes);
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) place(rows[i]);
  }
  while (begin < end) place(hn::LoadU(d, next(kLanes)));
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) place(first[i]);
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) place(last[i]);
  return left - keys;
}
#endif

int64_t divide_32(uint32_t* keys, int64_t n, uint32_t pivot) { return divide(keys, n, pivot); }
int64_t divide_64(uint64_t* keys, int64_t n, uint64_t pivot) { return divide(keys, n, pivot); }

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::cpu {
HWY_EXPORT(divide_32);
HWY_EXPORT(divide_64);

namespace {

constexpr int64_t kPart = 32768;  // the least that is worth a thread

int64_t divide(uint32_t* keys, int64_t n, uint32_t pivot) { return HWY_DYNAMIC_DISPATCH(divide_32)(keys, n, pivot); }
int64_t divide(uint64_t* keys, int64_t n, uint64_t pivot) { return HWY_DYNAMIC_DISPATCH(divide_64)(keys, n, pivot); }

// Shorter runs are sorted by networks, which take the more steps for each key the longer a run is.
template <class Key>
constexpr int64_t kShortRun = 4096 / sizeof(Key);

template <class Key>
Key median_of_sample(const Key* keys, int64_t n) {
  constexpr int64_t kMost = 128;
  Key sample[kMost];
  const int64_t size = n < 4096 ? kMost / 4 : kMost;
  for (int64_t i = 0; i < size; ++i) sample[i] = keys[(2 * i + 1) * (n / (2 * size))];
  sort_short(sample, size);
  return sample[size / 2];
}

// The unsorted parts of a run: the keys at its beginning, and the keys at its end.
struct Halves {
  int64_t front, back;
};
// n > kShortRun.
template <class Key>
Halves halve(Key* keys, int64_t n) {
  const Key pivot = median_of_sample(keys, n);
  const int64_t low = divide(keys, n, pivot);
  if (low < n) return {low, n - low};
  // The pivot is the greatest key: those like it go behind the others, and are sorted.
  return {pivot == 0 ? 0 : divide(keys, n, static_cast<Key>(pivot - 1)), 0};
}

template <class Key>
[[gnu::noinline]] void sort_block(Key* keys, int64_t n) {
  alignas(64) Key block[kShortRun<Key>];  // a network overwrites what lies behind the keys
  std::copy_n(keys, n, block);
  sort_short(block, n);
  std::copy_n(block, n, keys);
}

// At most `depth` divisions deep, for keys whose samples never show the middle.
template <class Key>
void sort_part(Key* keys, int64_t n, int depth) {
  for (; n > kShortRun<Key>; --depth) {
    if (depth == 0) return std::sort(keys, keys + n);
    const Halves left = halve(keys, n);
    sort_part(keys + n - left.back, left.back, depth - 1);
    n = left.front;
  }
  sort_block(keys, n);
}

template <class Key>
void sort_all(const bp_frame* frame, Key* keys, int64_t n) {
  using Part = std::span<Key>;
  std::vector<Part> parts{{keys, static_cast<size_t>(n)}};
  const auto for_parts = [&](const auto& fn) {
    plugin::parallel_for(frame, 0, static_cast<int64_t>(parts.size()), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) fn(static_cast<size_t>(i));
    });
  };
  const auto threads = static_cast<size_t>(frame->host->worker_count());
  while (2 * parts.size() <= threads && n / (2 * static_cast<int64_t>(parts.size())) >= kPart) {
    std::vector<Part> halves(2 * parts.size());
    for_parts([&](size_t i) {
      const Part part = parts[i];
      const auto size = static_cast<int64_t>(part.size());
      const Halves left = size > kShortRun<Key> ? halve(part.data(), size) : Halves{size, 0};
      halves[2 * i] = part.first(static_cast<size_t>(left.front));
      halves[2 * i + 1] = part.last(static_cast<size_t>(left.back));
    });
    parts = std::move(halves);
  }
  for_parts([&](size_t i) {
    const auto size = static_cast<int64_t>(parts[i].size());
    sort_part(parts[i].data(), size, 2 * std::bit_width(parts[i].size()));
  });
}

}  // namespace

void quick_sort(const bp_frame* frame, uint32_t* keys, int64_t n) { sort_all(frame, keys, n); }
void quick_sort(const bp_frame* frame, uint64_t* keys, int64_t n) { sort_all(frame, keys, n); }

}  // namespace backplane::cpu
#endif
