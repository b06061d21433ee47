// Sorting of some thousand keys or fewer by networks in vectors: no branch depends on the data. Pure.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "backplane/abi/base.h"

namespace backplane::cpu {

// Beyond this, dividing by pivots (vqsort) is as fast.
inline constexpr int64_t kShortKeys = 2048;

// Keys that the working memory of a sort of n has room for: networks are of powers of two, and of whole vectors.
inline int64_t sorting_room(int64_t n) {
  constexpr int64_t kVector = 16;
  return n > kShortKeys ? n : std::max(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n))), kVector);
}

// n <= kShortKeys keys in place, in ascending order; memory behind them, up to sorting_room(n), is overwritten.
void sort_short(uint32_t* keys, int64_t n);
void sort_short(uint64_t* keys, int64_t n);

// One lane of n <= kShortKeys elements of a real dtype or bool, strides in bytes, in the order of sort_keys.hpp. `keys`
// has room for sorting_room(n) integers of 64 bits.
void sort_short_lane(bp_dtype dtype, const char* x, int64_t x_stride, char* out, int64_t out_stride, int64_t n,
                     bool descending, void* keys);

}  // namespace backplane::cpu
