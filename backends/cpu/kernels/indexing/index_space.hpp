// The geometry of advanced indexing, shared by reading (index, take) and writing (index_put, take_put).
//
// The indexed axes of x are replaced by the broadcast shape of the index tensors: at their own place where they are
// neighbours, else first (NumPy's rule). Index tensors are read and checked once, into byte offsets into x.
#pragma once

#include <cstdint>
#include <vector>

#include "backplane/abi/host.h"
#include "loops/loop.hpp"

namespace backplane::cpu {

struct IndexSpace {
  // `indices[k]` indexes axis k of x; NULL where the axis is kept. Throws where an index is out of range.
  IndexSpace(const bp_frame* frame, const bp_tensor* x, bp_tensor* const* indices, uint32_t count);

  // Byte offsets into x of every joint position, in row-major order.
  std::vector<int64_t> offsets;
  int32_t joint_rank = 0;
  int64_t joint_shape[kMaxRank];
  // Axes of x that are kept: before and after the place of the joint axes in the indexed shape.
  int32_t before = 0, kept_rank = 0;
  int64_t kept_shape[kMaxRank], kept_strides[kMaxRank];  // in bytes, of x

  int64_t before_count() const { return count(0, before); }
  int64_t after_count() const { return count(before, kept_rank); }
  // Shape of x indexed.
  int32_t rank() const { return kept_rank + joint_rank; }
  void shape(int64_t* sizes) const;

 private:
  int64_t count(int32_t begin, int32_t end) const;
};

// visit(x offset, other offset) for every joint position under every position of the axes before it; `strides` (bytes)
// are those of the other tensor, of the indexed shape. Positions [begin, end) of before_count() * joint positions.
template <class Visit>
void for_each_position(const IndexSpace& space, const int64_t* strides, int64_t begin, int64_t end, Visit&& visit) {
  if (begin >= end) return;  // no elements: a size below is 0
  const auto joint = static_cast<int64_t>(space.offsets.size());
  const int32_t outer = space.before + space.joint_rank;
  int64_t position[kMaxRank];
  int64_t rest = begin, other = 0;
  for (int32_t d = outer - 1; d >= 0; --d) {
    const int64_t size = d < space.before ? space.kept_shape[d] : space.joint_shape[d - space.before];
    position[d] = rest % size;
    rest /= size;
    other += position[d] * strides[d];
  }
  for (int64_t at = begin; at < end; ++at) {
    int64_t offset = space.offsets[static_cast<size_t>(at % joint)];
    for (int32_t d = 0; d < space.before; ++d) offset += position[d] * space.kept_strides[d];
    visit(offset, other);
    for (int32_t d = outer - 1; d >= 0; --d) {
      const int64_t size = d < space.before ? space.kept_shape[d] : space.joint_shape[d - space.before];
      other += strides[d];
      if (++position[d] < size) break;
      other -= size * strides[d];
      position[d] = 0;
    }
  }
}

}  // namespace backplane::cpu
