// What kernels share that read or write at positions of one axis, where the other axes broadcast.
#pragma once

#include "kernels/cast.hpp"
#include "kernels/lanes.hpp"

namespace backplane::cpu {

// A tensor as an operand of a shape to which it broadcasts, axis by axis of one rank.
struct Broadcast {
  LaneOperand operand;
  int64_t strides[kMaxRank];

  Broadcast(const bp_tensor* t, int32_t rank) : operand(lane_operand(t)) {
    const int32_t missing = rank - t->dl.ndim;
    for (int32_t d = 0; d < rank; ++d)
      strides[d] = d < missing || t->dl.shape[d - missing] == 1 ? 0 : t->dl.strides[d - missing];
    operand.strides = strides;
  }
  Broadcast(const Broadcast&) = delete;
};

[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_index(const bp_frame* frame, int64_t given, int64_t size) {
  BP_CHECK(false, DATA, frame->op->name, ": index ", given, " is out of range for an axis of size ", size);
  __builtin_unreachable();
}

// move(position in the indexed lane, place in the index lane) for each index of one lane.
template <class Move>
void for_each_index(const bp_frame* frame, bp_dtype dtype, const char* index, int64_t stride, int64_t n, int64_t size,
                    Move&& move) {
  const auto visit = [&](const int64_t* positions, int64_t first, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = positions[i] < 0 ? positions[i] + size : positions[i];
      if (static_cast<uint64_t>(at) >= static_cast<uint64_t>(size)) [[unlikely]]
        refuse_index(frame, positions[i], size);
      move(at, first + i);
    }
  };
  if (dtype == BP_INT64 && stride == int64_t{sizeof(int64_t)})
    return visit(reinterpret_cast<const int64_t*>(index), 0, n);
  constexpr int64_t kBlock = 128;
  int64_t block[kBlock];
  for (int64_t first = 0; first < n; first += kBlock) {
    const int64_t count = std::min(kBlock, n - first);
    cast_row(dtype, index + first * stride, stride, BP_INT64, reinterpret_cast<char*>(block), sizeof(int64_t), count);
    visit(block, first, count);
  }
}

// The result has x's shape, so nothing has compared the others with it yet: indices broadcast with x but for `axis`,
// values broadcast to the places that result.
inline void check_put(const bp_frame* frame, const bp_tensor& x, const bp_tensor& indices, const bp_tensor& values,
                      int axis) {
  const char* name = frame->op->name;
  BP_CHECK(indices.dl.ndim == x.dl.ndim, SHAPE, name, ": 'indices' has ", indices.dl.ndim, " dims, expected ",
           x.dl.ndim, ", as 'x' has");
  BP_CHECK(values.dl.ndim <= x.dl.ndim, SHAPE, name, ": 'values' has ", values.dl.ndim, " dims, expected at most ",
           x.dl.ndim, ", as 'x' has");
  for (int32_t d = 0; d < x.dl.ndim; ++d) {
    const int64_t size = x.dl.shape[d], index = indices.dl.shape[d], places = d == axis ? index : size;
    BP_CHECK(d == axis || index == size || index == 1, SHAPE, name, ": 'indices' has size ", index, " along axis ", d,
             ", expected 1 or ", size, ", as 'x' has");
    const int32_t own = d - (x.dl.ndim - values.dl.ndim);
    const int64_t value = own < 0 ? 1 : values.dl.shape[own];
    BP_CHECK(value == places || value == 1, SHAPE, name, ": 'values' has size ", value, " along axis ", d,
             ", expected 1 or ", places);
  }
}

}  // namespace backplane::cpu
