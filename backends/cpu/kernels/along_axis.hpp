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

// move(position in the indexed lane, place in the index lane) for each index of one lane.
template <class Move>
void for_each_index(const bp_frame* frame, bp_dtype dtype, const char* index, int64_t stride, int64_t n, int64_t size,
                    Move&& move) {
  constexpr int64_t kBlock = 128;
  int64_t block[kBlock];
  for (int64_t first = 0; first < n; first += kBlock) {
    const int64_t count = std::min(kBlock, n - first);
    cast_row(dtype, index + first * stride, stride, BP_INT64, reinterpret_cast<char*>(block), sizeof(int64_t), count);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = block[i] < 0 ? block[i] + size : block[i];
      BP_CHECK(at >= 0 && at < size, DATA, frame->op->name, ": index ", block[i],
               " is out of range for an axis of size ", size);
      move(at, first + i);
    }
  }
}

}  // namespace backplane::cpu
