// See accumulate.hpp.
#include "kernels/indexing/accumulate.hpp"

#include <algorithm>

#include "kernels/indexing/widened.hpp"
#include "loops/cast_row.hpp"
#include "loops/item_type.hpp"

namespace backplane::cpu {
namespace {

// n elements of one dtype that meet, or replace, their targets: rows, and single elements.
template <class T, bool Add>
void meet(T& target, T value) {
  if constexpr (Add)
    add_to(target, value);
  else
    target = value;
}
template <class T, bool Add>
void row(const char* from, int64_t from_stride, char* to, int64_t to_stride, int64_t n) {
  const T* values = reinterpret_cast<const T*>(from);
  T* targets = reinterpret_cast<T*>(to);
  if (n >= 8 && from_stride == int64_t{sizeof(T)} && to_stride == int64_t{sizeof(T)}) {
    // Whole rows, which the compiler vectorises: a value and its target are never the same memory.
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) meet<T, Add>(targets[i], values[i]);
    return;
  }
  for (int64_t i = 0; i < n; ++i, from += from_stride, to += to_stride)
    meet<T, Add>(*reinterpret_cast<T*>(to), *reinterpret_cast<const T*>(from));
}
template <class T, bool Add>
void elements(const char* from, int64_t from_stride, char* to, const int64_t* offsets, int64_t n) {
  for (int64_t i = 0; i < n; ++i, from += from_stride)
    meet<T, Add>(*reinterpret_cast<T*>(to + offsets[i]), *reinterpret_cast<const T*>(from));
}

template <class T, bool Add>
constexpr Scatter kScatter{row<T, Add>, elements<T, Add>};

// Small floats in blocks of Wide.
constexpr int64_t kBlock = 256;
template <class T, class Use>
void for_wide_blocks(const char* from, int64_t from_stride, int64_t n, Use&& use) {
  using W = Wide<T>;
  W block[kBlock];
  for (int64_t at = 0; at < n; at += kBlock) {
    const int64_t count = std::min(kBlock, n - at);
    cast_row(plugin::kDtypeOf<T>, from + at * from_stride, from_stride, plugin::kDtypeOf<W>,
             reinterpret_cast<char*>(block), sizeof(W), count);
    use(reinterpret_cast<const char*>(block), at, count);
  }
}
template <class T>
void widened_row(const char* from, int64_t from_stride, char* to, int64_t to_stride, int64_t n) {
  for_wide_blocks<T>(from, from_stride, n, [&](const char* block, int64_t at, int64_t count) {
    row<Wide<T>, true>(block, sizeof(Wide<T>), to + at * to_stride, to_stride, count);
  });
}
template <class T>
void widened_elements(const char* from, int64_t from_stride, char* to, const int64_t* offsets, int64_t n) {
  for_wide_blocks<T>(from, from_stride, n, [&](const char* block, int64_t at, int64_t count) {
    elements<Wide<T>, true>(block, sizeof(Wide<T>), to, offsets + at, count);
  });
}
template <class T>
constexpr Scatter kWidened{widened_row<T>, widened_elements<T>};

}  // namespace

Scatter scatter_of(bp_dtype from, bp_dtype to, bool accumulate) {
  Scatter found{};
  if (from != to) {
    plugin::dispatch_dtype<kNarrow>(from, [&]<class T>() { found = kWidened<T>; });
    return found;
  }
  if (accumulate && to == BP_BOOL)
    found = kScatter<BoolByte, true>;
  else if (accumulate)
    plugin::dispatch_dtype<BP_MASK_ANY & ~BP_MASK_BOOL>(to, [&]<class T>() { found = kScatter<T, true>; });
  else
    with_item_type(plugin::kItemSize[to], [&]<class Item>() { found = kScatter<Item, false>; });
  return found;
}

}  // namespace backplane::cpu
