// Reading and writing at positions that integer tensors give: of index and index_put, as the core's loop over what the
// indices select says, and of take and take_put, along one axis.
//
// Index tensors are read and checked once, into byte offsets into the indexed tensor.
#pragma once

#include <cstdint>
#include <vector>

#include "backplane/abi/host.h"
#include "loops/loop.hpp"

namespace backplane::cpu {

class IndexSpace {
 public:
  // Of the frame's loop; element k of `list` indexes axis k. `wider`: how many times as large as in the loop the items
  // of the indexed tensor are, if it stands for a tensor of the same order.
  IndexSpace(const bp_frame* frame, const bp_value& list, int64_t wider = 1);
  // Of `indexed` along `axis`, at whose place the dims of `positions` stand. `wider`: as above.
  IndexSpace(const bp_frame* frame, const bp_tensor* indexed, int32_t axis, const bp_tensor* positions,
             int64_t wider = 1);

  // Byte offsets into the indexed tensor of every joint position, in row-major order.
  std::vector<int64_t> offsets;
  int32_t joint_rank = 0;
  int64_t joint_shape[kMaxRank];
  // Axes of the indexed tensor that are kept: before and after the joint ones in the shape of the selection.
  int32_t before = 0, kept_rank = 0;
  int64_t kept_shape[kMaxRank], kept_strides[kMaxRank];  // in bytes

  int64_t before_count() const {
    int64_t product = 1;
    for (int32_t d = 0; d < before; ++d) product *= kept_shape[d];
    return product;
  }

 private:
  struct Positions;
  void keep(int64_t size, int64_t stride);
  void make_offsets();
  void add_offsets(const bp_frame* frame, const Positions& positions);
};

// Of an index whose result has no elements: its positions have to be in range all the same, where there are any.
void check_positions(const bp_frame* frame, const bp_value& list);

// visit(indexed offset, other offset) for every joint position under every position of the axes before it; `strides`
// (bytes) are of the other tensor, along the dims of the selection. Positions [begin, end) of before_count() *
// joint positions.
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
