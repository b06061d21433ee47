// Contiguous tensors seen as (outer, n, inner), where n runs over one axis or over neighbouring ones.
#pragma once

#include <cstdint>

#include "loops/elementwise.hpp"
#include "loops/lanes.hpp"

namespace backplane::cpu {

struct AxisBlock {
  int64_t outer = 1, n = 1, inner = 1;
  bool neighbours = true;  // the axes are neighbours, each given once

  int64_t lanes() const { return outer * inner; }
  // The first element of a lane; its elements are `inner` apart.
  int64_t start(int64_t lane) const { return lane / inner * n * inner + lane % inner; }
};

// `axes`: an int or a list of ints; absent: all.
inline AxisBlock axis_block(const bp_tensor* x, const bp_value& axes) {
  const int32_t rank = x->dl.ndim;
  if (axes.tag == BP_TAG_ABSENT) {
    AxisBlock all;
    for (int32_t d = 0; d < rank; ++d) all.n *= x->dl.shape[d];
    return all;
  }
  const int64_t* list = axes.tag == BP_TAG_INT ? &axes.u.i : axes.u.ints;
  const uint32_t count = axes.tag == BP_TAG_INT ? 1 : axes.count;
  uint64_t chosen = 0;
  AxisBlock block;
  for (uint32_t i = 0; i < count && rank > 0; ++i) chosen |= uint64_t{1} << list[i];
  int32_t first = rank, last = -1, found = 0;
  for (int32_t d = 0; d < rank; ++d) {
    if ((chosen >> d & 1) == 0) continue;
    first = std::min(first, d);
    last = d;
    ++found;
  }
  block.neighbours = found == 0 ? rank == 0 : last - first + 1 == found;
  for (int32_t d = 0; d < rank; ++d) (d < first ? block.outer : d <= last ? block.n : block.inner) *= x->dl.shape[d];
  return block;
}

}  // namespace backplane::cpu
