// Copies elements of any dtype, bits as they are, over any strides.
//
// at: result, x. n: count, rank (0: flat), mask of operands that are one element for all.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "call.glsl"

void main() {
  const uint count = n[0], rank = n[1], single = n[2];
  for (uint i = gl_GlobalInvocationID.x; i < count; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
    int offsets[4] = int[4](int(i), (single & 2u) != 0u ? 0 : int(i), 0, 0);
    if (rank > 0u) offsets_of(i, dims, rank, 3u, offsets);
    move(element(at[0], offsets[0], kIn), element(at[1], offsets[1], kIn), kIn);
  }
}
