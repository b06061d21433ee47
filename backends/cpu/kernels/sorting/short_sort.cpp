// See short_sort.hpp. A block of up to 16 vectors is sorted in registers: first down its columns, by Batcher's network,
// then columns are merged two by two, four by four, …, by bitonic networks whose steps swap lanes; so a sorted run goes
// down the columns. Blocks are merged in memory (K. Batcher, "Sorting networks and their applications", 1968).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/sorting/short_sort.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "kernels/sorting/short_sort.hpp"
#include "kernels/sorting/sort_keys.hpp"

HWY_BEFORE_NAMESPACE();
namespace backplane::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR || HWY_HAVE_SCALABLE
// Vectors of one lane, or of a number that the compiler does not know.
template <class Key>
void sort_network(Key* keys, int64_t n) {
  std::sort(keys, keys + n);
}
#else

template <class Key>
struct Network {
  using D = hn::ScalableTag<Key>;
  using V = hn::Vec<D>;
  static constexpr int kLanes = static_cast<int>(hn::MaxLanes(D()));
  static constexpr int kRows = 16;
  static constexpr int64_t kBlock = kRows * kLanes;

  static HWY_INLINE void order(V& low, V& high) {
    const V x = low;
    low = hn::Min(x, high);
    high = hn::Max(x, high);
  }

  // Lanes l and l ^ Distance change places.
  template <int Distance>
  static HWY_INLINE V swap(V v) {
    const D d;
    const hn::Repartition<uint32_t, D> d32;
    if constexpr (Distance * sizeof(Key) == 4)
      return hn::BitCast(d, hn::Shuffle2301(hn::BitCast(d32, v)));
    else if constexpr (Distance * sizeof(Key) == 8)
      return hn::BitCast(d, hn::Shuffle1032(hn::BitCast(d32, v)));
    else if constexpr (Distance * sizeof(Key) == 16)
      return hn::SwapAdjacentBlocks(v);
    else
      return hn::ConcatLowerUpper(d, v, v);
  }
  // Groups of neighbouring lanes, each turned round.
  template <int Group>
  static HWY_INLINE V reversed(V v) {
    const D d;
    if constexpr (Group == kLanes)
      return hn::Reverse(d, v);
    else if constexpr (Group == 8)
      return hn::Reverse8(d, v);
    else if constexpr (Group == 4)
      return hn::Reverse4(d, v);
    else
      return hn::Reverse2(d, v);
  }
  // `high` in the lanes whose number has the bit Distance, `low` in the others.
  template <int Distance>
  static HWY_INLINE V blend(V low, V high) {
    const D d;
    const hn::Repartition<uint32_t, D> d32;
    const hn::Repartition<uint64_t, D> d64;
    if constexpr (Distance * sizeof(Key) == 4)
      return hn::BitCast(d, hn::OddEven(hn::BitCast(d32, high), hn::BitCast(d32, low)));
    else if constexpr (Distance * sizeof(Key) == 8)
      return hn::BitCast(d, hn::OddEven(hn::BitCast(d64, high), hn::BitCast(d64, low)));
    else if constexpr (Distance * sizeof(Key) == 16)
      return hn::OddEvenBlocks(high, low);
    else
      return hn::ConcatUpperLower(d, high, low);
  }

  // Batcher's odd-even mergesort of v[Low], …, v[Low + N - 1], lane by lane.
  template <int Low, int N, int Step>
  static HWY_INLINE void merge_rows(V* HWY_RESTRICT v) {
    if constexpr (2 * Step < N) {
      merge_rows<Low, N, 2 * Step>(v);
      merge_rows<Low + Step, N, 2 * Step>(v);
#pragma GCC unroll 16
      for (int i = Low + Step; i + Step < Low + N; i += 2 * Step) order(v[i], v[i + Step]);
    } else {
      order(v[Low], v[Low + Step]);
    }
  }
  template <int Low, int N>
  static HWY_INLINE void sort_rows(V* HWY_RESTRICT v) {
    if constexpr (N > 1) {
      sort_rows<Low, N / 2>(v);
      sort_rows<Low + N / 2, N / 2>(v);
      merge_rows<Low, N, 1>(v);
    }
  }

  // Bitonic sequences down the columns of N rows.
  template <int N, int Step = N / 2>
  static HWY_INLINE void finish_rows(V* HWY_RESTRICT v) {
    if constexpr (Step > 0) {
#pragma GCC unroll 16
      for (int i = 0; i < N; ++i)
        if ((i & Step) == 0) order(v[i], v[i + Step]);
      finish_rows<N, Step / 2>(v);
    }
  }
  // Steps between lanes Distance, Distance / 2, …, 1 apart.
  template <int N, int Distance>
  static HWY_INLINE void finish_lanes(V* HWY_RESTRICT v) {
    if constexpr (Distance > 0) {
#pragma GCC unroll 16
      for (int i = 0; i < N; ++i) {
        const V other = swap<Distance>(v[i]);
        v[i] = blend<Distance>(hn::Min(v[i], other), hn::Max(v[i], other));
      }
      finish_lanes<N, Distance / 2>(v);
    }
  }
  // Runs down Width columns become runs down 2 * Width, until there is one.
  template <int N, int Width = 1>
  static HWY_INLINE void merge_columns(V* HWY_RESTRICT v) {
    if constexpr (Width < kLanes) {
#pragma GCC unroll 16
      for (int i = 0; i < (N + 1) / 2; ++i) {
        const int j = N - 1 - i;
        const V x = v[i], y = reversed<2 * Width>(v[j]);
        const V low = hn::Min(x, y), high = hn::Max(x, y);
        v[i] = blend<Width>(low, high);
        if (i != j) v[j] = reversed<2 * Width>(blend<Width>(high, low));
      }
      finish_lanes<N, Width / 2>(v);
      finish_rows<N>(v);
      merge_columns<N, 2 * Width>(v);
    }
  }

  // Columns one after another. Squares of one 16-byte block on a side are turned in registers, blocks through memory.
  template <int N>
  static HWY_INLINE void store_columns(V* HWY_RESTRICT v, Key* HWY_RESTRICT keys) {
    const D d;
    constexpr int kSide = 16 / sizeof(Key);
    if constexpr (N == 1) {
      hn::StoreU(v[0], d, keys);
    } else if constexpr (N < kSide) {
      hn::StoreInterleaved2(v[0], v[1], d, keys);
    } else {
      HWY_ALIGN Key square[kSide * kLanes];
#pragma GCC unroll 16
      for (int row = 0; row < N; row += kSide) {
        turn(v + row, square);
#pragma GCC unroll 16
        for (int column = 0; column < kLanes; ++column)
          std::copy_n(square + column % kSide * kLanes + column / kSide * kSide, kSide, keys + column * N + row);
      }
    }
  }
  static HWY_INLINE void turn(const V* HWY_RESTRICT v, Key* HWY_RESTRICT square) {
    const D d;
    if constexpr (sizeof(Key) == 8) {
      hn::Store(hn::InterleaveLower(d, v[0], v[1]), d, square);
      hn::Store(hn::InterleaveUpper(d, v[0], v[1]), d, square + kLanes);
    } else {
      const hn::Repartition<uint64_t, D> d64;
      const auto a = hn::BitCast(d64, hn::InterleaveLower(d, v[0], v[1]));
      const auto b = hn::BitCast(d64, hn::InterleaveUpper(d, v[0], v[1]));
      const auto c = hn::BitCast(d64, hn::InterleaveLower(d, v[2], v[3]));
      const auto e = hn::BitCast(d64, hn::InterleaveUpper(d, v[2], v[3]));
      hn::Store(hn::BitCast(d, hn::InterleaveLower(d64, a, c)), d, square);
      hn::Store(hn::BitCast(d, hn::InterleaveUpper(d64, a, c)), d, square + kLanes);
      hn::Store(hn::BitCast(d, hn::InterleaveLower(d64, b, e)), d, square + 2 * kLanes);
      hn::Store(hn::BitCast(d, hn::InterleaveUpper(d64, b, e)), d, square + 3 * kLanes);
    }
  }

  template <int N>
  static HWY_NOINLINE void sort_block(Key* HWY_RESTRICT keys) {
    const D d;
    V v[N];
#pragma GCC unroll 16
    for (int i = 0; i < N; ++i) v[i] = hn::LoadU(d, keys + i * kLanes);
    sort_rows<0, N>(v);
    merge_columns<N>(v);
    store_columns<N>(v, keys);
  }

  // A run of `half` vectors and one behind it become one.
  static void merge_runs(Key* HWY_RESTRICT keys, int64_t half) {
    const D d;
    Key* const upper = keys + half * kLanes;
    for (int64_t i = 0, j = half - 1; i < j; ++i, --j) {
      Key *low_i = keys + i * kLanes, *low_j = keys + j * kLanes, *up_i = upper + i * kLanes,
          *up_j = upper + j * kLanes;
      V a = hn::LoadU(d, low_i), b = hn::Reverse(d, hn::LoadU(d, up_j));
      V c = hn::LoadU(d, low_j), e = hn::Reverse(d, hn::LoadU(d, up_i));
      order(a, b);
      order(c, e);
      hn::StoreU(a, d, low_i);
      hn::StoreU(b, d, up_i);
      hn::StoreU(c, d, low_j);
      hn::StoreU(e, d, up_j);
    }
    for (int64_t step = half / 2; step >= kRows; step /= 2)
      for (int64_t first = 0; first < 2 * half; first += 2 * step)
        for (int64_t i = first; i < first + step; ++i) {
          V a = hn::LoadU(d, keys + i * kLanes), b = hn::LoadU(d, keys + (i + step) * kLanes);
          order(a, b);
          hn::StoreU(a, d, keys + i * kLanes);
          hn::StoreU(b, d, keys + (i + step) * kLanes);
        }
    for (int64_t i = 0; i < 2 * half; i += kRows) finish_block(keys + i * kLanes);
  }
  static HWY_NOINLINE void finish_block(Key* HWY_RESTRICT keys) {
    const D d;
    V v[kRows];
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) v[i] = hn::LoadU(d, keys + i * kLanes);
    finish_rows<kRows>(v);
    finish_lanes<kRows, kLanes / 2>(v);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) hn::StoreU(v[i], d, keys + i * kLanes);
  }

  // `room` keys, a power of two and at least a vector.
  static void sort(Key* keys, int64_t room) {
    switch (room / kLanes) {
      case 1:
        return sort_block<1>(keys);
      case 2:
        return sort_block<2>(keys);
      case 4:
        return sort_block<4>(keys);
      case 8:
        return sort_block<8>(keys);
      default:
        break;
    }
    for (int64_t i = 0; i < room; i += kBlock) sort_block<kRows>(keys + i);
    for (int64_t run = kBlock; run < room; run *= 2)
      for (int64_t i = 0; i < room; i += 2 * run) merge_runs(keys + i, run / kLanes);
  }
};

template <class Key>
HWY_INLINE void sort_network(Key* keys, int64_t n) {
  if (n < 2) return;
  // AVX2 compares lanes of 64 bits with a sign only.
  using Lane = std::conditional_t<sizeof(Key) == 8, int64_t, Key>;
  constexpr Key kFlip = std::is_signed_v<Lane> ? Key{1} << (8 * sizeof(Key) - 1) : Key{0};
  const int64_t room =
      std::max<int64_t>(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n))), Network<Lane>::kLanes);
  if constexpr (kFlip != 0)
    for (int64_t i = 0; i < n; ++i) keys[i] ^= kFlip;
  std::fill(keys + n, keys + room, static_cast<Key>(std::numeric_limits<Lane>::max()));
  Network<Lane>::sort(reinterpret_cast<Lane*>(keys), room);
  if constexpr (kFlip != 0)
    for (int64_t i = 0; i < n; ++i) keys[i] ^= kFlip;
}
#endif

template <class T>
void sort_lane(const char* x, int64_t x_stride, char* out, int64_t out_stride, int64_t n, bool descending, void* keys) {
  using Key = SortKey<T>;
  Key* own = static_cast<Key*>(keys);
  read_keys<T>(x, x_stride, n, descending, own);
  sort_network(own, n);
  write_keys<T>(own, n, descending, out, out_stride);
}

void sort_lane_of(bp_dtype dtype, const char* x, int64_t x_stride, char* out, int64_t out_stride, int64_t n,
                  bool descending, void* keys) {
  if (dtype == BP_BOOL) dtype = BP_UINT8;
  plugin::dispatch_dtype<BP_MASK_INTEGER | BP_MASK_FLOATING>(
      dtype, [&]<class T>() { sort_lane<T>(x, x_stride, out, out_stride, n, descending, keys); });
}
void sort_keys_32(uint32_t* keys, int64_t n) { sort_network(keys, n); }
void sort_keys_64(uint64_t* keys, int64_t n) { sort_network(keys, n); }

}  // namespace HWY_NAMESPACE
}  // namespace backplane::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::cpu {
HWY_EXPORT(sort_lane_of);
HWY_EXPORT(sort_keys_32);
HWY_EXPORT(sort_keys_64);

void sort_short(uint32_t* keys, int64_t n) { HWY_DYNAMIC_DISPATCH(sort_keys_32)(keys, n); }
void sort_short(uint64_t* keys, int64_t n) { HWY_DYNAMIC_DISPATCH(sort_keys_64)(keys, n); }
void sort_short_lane(bp_dtype dtype, const char* x, int64_t x_stride, char* out, int64_t out_stride, int64_t n,
                     bool descending, void* keys) {
  HWY_DYNAMIC_DISPATCH(sort_lane_of)(dtype, x, x_stride, out, out_stride, n, descending, keys);
}

}  // namespace backplane::cpu
#endif
