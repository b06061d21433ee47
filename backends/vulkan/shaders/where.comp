// The elements of one tensor where a condition holds, of another elsewhere; bits as they are.
//
// at: result, condition, x, y. n: count, rank (0: flat), mask of operands that are one element for all.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "call.glsl"

void main() {
  const uint count = n[0], rank = n[1], single = n[2];
  for (uint i = gl_GlobalInvocationID.x; i < count; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
    int offsets[4];
    for (uint k = 0u; k < 4u; ++k) offsets[k] = (single >> k & 1u) != 0u ? 0 : int(i);
    if (rank > 0u) offsets_of(i, dims, rank, 5u, offsets);
    const bool holds = load_bool(element(at[1], offsets[1], kBool), kBool);
    move(element(at[0], offsets[0], kIn),
         holds ? element(at[2], offsets[2], kIn) : element(at[3], offsets[3], kIn), kIn);
  }
}
