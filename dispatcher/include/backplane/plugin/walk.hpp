// Walks the indices of a shape in row-major order, with an offset for each operand; and the lines along an axis of a
// contiguous tensor.
//
// For memory that this code can address. Not the contract: header-only sugar over it.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "backplane/plugin/tensor_view.hpp"

namespace backplane::plugin {

inline constexpr int32_t kMaxRank = 64;  // the contract's

// body(offsets) for every index of `rank` dimensions of size(d); offsets[k] follows stride(k, d).
template <size_t N, class Size, class Stride, class Body>
void walk_dims(int32_t rank, Size size, Stride stride, Body&& body) {
  for (int32_t d = 0; d < rank; ++d)
    if (size(d) == 0) return;
  std::array<int64_t, N> offsets{};
  std::array<int64_t, kMaxRank> index;
  std::fill_n(index.begin(), rank, 0);
  while (true) {
    body(offsets);
    int32_t d = rank - 1;
    for (; d >= 0; --d) {
      const bool wraps = ++index[static_cast<size_t>(d)] == size(d);
      for (size_t k = 0; k < N; ++k) offsets[k] += (wraps ? 1 - size(d) : 1) * stride(k, d);
      if (!wraps) break;
      index[static_cast<size_t>(d)] = 0;
    }
    if (d < 0) return;
  }
}

using Ints = std::span<const int64_t>;

// The same of a shape and of strides in elements, which offsets then are too.
template <size_t N, class Body>
void walk(Ints shape, const std::array<Ints, N>& strides, Body&& body) {
  walk_dims<N>(
      static_cast<int32_t>(shape.size()), [&](int32_t d) { return shape[static_cast<size_t>(d)]; },
      [&](size_t k, int32_t d) { return strides[k][static_cast<size_t>(d)]; }, body);
}

// The strides with which a tensor is seen at a larger shape: its last axes align, sizes of 1 repeat.
inline std::vector<int64_t> broadcast_strides(Ints shape, Ints strides, size_t rank) {
  std::vector<int64_t> seen(rank, 0);
  for (size_t d = 0; d < shape.size(); ++d)
    if (shape[d] != 1) seen[rank - shape.size() + d] = strides[d];
  return seen;
}

inline int64_t count_of(Ints shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

// A contiguous tensor of (outer, length, inner) elements: lines of `length` elements that are `inner` apart.
struct Lines {
  int64_t outer = 1, length = 1, inner = 1;
  Lines(Ints shape, size_t axis) {
    for (size_t d = 0; d < shape.size(); ++d) (d < axis ? outer : d == axis ? length : inner) *= shape[d];
  }
};

// body(x, out) with the offsets, in elements, of the first element of each line; the results' lines have `out_length`.
template <class Body>
void for_each_line(const Lines& lines, int64_t out_length, Body&& body) {
  for (int64_t o = 0; o < lines.outer; ++o)
    for (int64_t i = 0; i < lines.inner; ++i)
      body(o * lines.length * lines.inner + i, o * out_length * lines.inner + i);
}

}  // namespace backplane::plugin
