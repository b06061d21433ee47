// See accumulate.hpp.
#include "kernels/accumulate.hpp"

#include "kernels/item_type.hpp"

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

struct Scatter {
  ScatterRow row;
  ScatterElements elements;
};
template <class T, bool Add>
constexpr Scatter kScatter{row<T, Add>, elements<T, Add>};

Scatter scatter_of(bp_dtype dtype, bool accumulate) {
  Scatter found{};
  if (accumulate)
    plugin::dispatch_dtype<BP_MASK_ANY>(dtype, [&]<class T>() { found = kScatter<T, true>; });
  else
    with_item_type(plugin::kItemSize[dtype], [&]<class Item>() { found = kScatter<Item, false>; });
  return found;
}

}  // namespace

ScatterRow scatter_row(bp_dtype dtype, bool accumulate) { return scatter_of(dtype, accumulate).row; }
ScatterElements scatter_elements(bp_dtype dtype, bool accumulate) { return scatter_of(dtype, accumulate).elements; }

}  // namespace backplane::cpu
