// Advanced indexing, second step: reads the elements that the positions point at.
//
// at: result, x, offsets of the positions in x. n: positions, elements of each, rank of the positions, rank of the
// elements. dims: rows with strides of the result of the positions, then rows with strides of the result and of x of
// the elements.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "call.glsl"

void main() {
  receive();
  const uint each = n[1], count = n[0] * each;
  const uint64_t rows = rows_behind(dims, n[2], 1u);
  for (uint i = gl_GlobalInvocationID.x; i < count; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
    const uint position = i / each;
    int place[4], kept[4];
    offsets_of(position, dims, n[2], 1u, place);
    offsets_of(i % each, rows, n[3], 2u, kept);
    const int from = int(Ref32(at[2] + uint64_t(position) * 4ul).v) + kept[1];
    move(element(at[0], place[0] + kept[0], kIn), element(at[1], from, kIn), kIn);
  }
}
