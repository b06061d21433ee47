// Advanced indexing, last step of writing: the values of all positions that point at one place are met in their order,
// by one invocation, so that the last one stays, or the sum is the same at every run.
//
// at: result, values, offsets of the positions in the result, positions in the order of their offsets. n: positions,
// elements of each, rank of the positions, rank of the elements. dims: rows with strides of the values of the
// positions, then rows with strides of the values and of the result. kOption 1: adds.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "class.glsl"

int offset_at(uint place) { return int(Ref32(at[2] + uint64_t(Ref32(at[3] + uint64_t(place) * 4ul).v) * 4ul).v); }

void main() {
  receive();
  const uint each = n[1], count = n[0] * each;
  const uint64_t rows = rows_behind(dims, n[2], 1u);
  for (uint i = gl_GlobalInvocationID.x; i < count; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
    uint place = i / each;
    const int target = offset_at(place);
    if (place > 0u && offset_at(place - 1u) == target) continue;
    int kept[4], value[4];
    offsets_of(i % each, rows, n[3], 2u, kept);
    const uint64_t to = element(at[0], target + kept[1], kIn);
    uint64_t from;
    T total = T(0);
    if (kOption == 1u) total = LOAD(to, kIn);
    for (; place < n[0] && offset_at(place) == target; ++place) {
      offsets_of(Ref32(at[3] + uint64_t(place) * 4ul).v, dims, n[2], 1u, value);
      from = element(at[1], value[0] + kept[0], kIn);
      if (kOption == 1u) total = add(total, LOAD(from, kIn));
    }
    if (kOption == 0u)
      move(to, from, kIn);
    else if (kIn == kBool)
      store(to, kBool, !is_zero(total));
    else
      store(to, kIn, total);
  }
}
