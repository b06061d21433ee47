// The elements of one tensor where a condition holds, of another elsewhere; bits as they are.
//
// at: result, condition, x, y. n, kOption: as in loop.glsl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "loop.glsl"

void select_pair(uint i) {
  const uint64_t condition = pair_at(i, 1u, kBool), x = pair_at(i, 2u, kIn), y = pair_at(i, 3u, kIn);
  const bool first = half_of(condition, 0u, 1u, kBool) != 0ul, second = half_of(condition, 1u, 1u, kBool) != 0ul;
  const uint64_t low = first ? half_of(x, 0u, 2u, kIn) : half_of(y, 0u, 3u, kIn);
  const uint64_t high = second ? half_of(x, 1u, 2u, kIn) : half_of(y, 1u, 3u, kIn);
  store_pair_at(i, kIn, low | high << (8u << shift_of(kIn)));
}

void main() {
  receive();
  const uint count = n[0];
  for (uint i = gl_GlobalInvocationID.x; i < count; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
    if (kPaired) {
      select_pair(i);
      continue;
    }
    int offsets[4];
    loop_offsets(i, 4u, offsets);
    const bool holds = load_bool(element(at[1], offsets[1], kBool), kBool);
    move(element(at[0], offsets[0], kIn),
         holds ? element(at[2], offsets[2], kIn) : element(at[3], offsets[3], kIn), kIn);
  }
}
