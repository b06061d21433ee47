// Walks the indices of a shape in row-major order, keeping one element offset per operand.
#pragma once

#include <algorithm>
#include <array>

#include "../call.hpp"

namespace sim {

// The strides with which an operand is seen at a larger shape: its last axes align, sizes 1 repeat.
inline std::vector<int64_t> broadcast_strides(const Operand& operand, const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size(), 0);
  const size_t skipped = shape.size() - operand.shape.size();
  for (size_t d = 0; d < operand.shape.size(); ++d)
    if (operand.shape[d] != 1) strides[skipped + d] = operand.strides[d];
  return strides;
}

// body(offsets) for every index of `shape`.
template <size_t N, class Body>
void walk(const std::vector<int64_t>& shape, const std::array<std::vector<int64_t>, N>& strides, Body&& body) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return;
  std::array<int64_t, N> offsets{};
  std::vector<int64_t> index(shape.size(), 0);
  while (true) {
    body(offsets);
    size_t d = shape.size();
    while (true) {
      if (d == 0) return;
      --d;
      const bool wraps = ++index[d] == shape[d];
      for (size_t k = 0; k < N; ++k) offsets[k] += strides[k][d] * (wraps ? 1 - shape[d] : 1);
      if (!wraps) break;
      index[d] = 0;
    }
  }
}

template <class T>
void fill(const Operand& out, T value) {
  T* data = reinterpret_cast<T*>(out.data);
  walk<1>(out.shape, {out.strides}, [&](const auto& at) { data[at[0]] = value; });
}

// Copies elements of one dtype; the source is broadcast.
template <class T>
void copy_elements(const Operand& from, const Operand& to) {
  const T* source = reinterpret_cast<const T*>(from.data);
  T* target = reinterpret_cast<T*>(to.data);
  walk<2>(to.shape, {to.strides, broadcast_strides(from, to.shape)},
          [&](const auto& at) { target[at[0]] = source[at[1]]; });
}

// A contiguous copy whose elements lie in `bytes`.
template <class T>
Operand copy_of(const Operand& operand, std::vector<char>& bytes) {
  Operand made = operand;
  bytes.resize(static_cast<size_t>(operand.count()) * sizeof(T));
  made.data = bytes.data();
  int64_t stride = 1;
  for (size_t d = made.shape.size(); d-- > 0; stride *= made.shape[d]) made.strides[d] = stride;
  copy_elements<T>(operand, made);
  return made;
}

}  // namespace sim
