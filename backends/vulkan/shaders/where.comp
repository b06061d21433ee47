// The elements of one tensor where a condition holds, of another elsewhere; bits as they are.
//
// at: result, condition, x, y. n, kOption: as in loop.glsl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "loop.glsl"

void main() {
  receive();
  const uint count = n[0];
  for (uint i = gl_GlobalInvocationID.x; i < count; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
    int offsets[4];
    loop_offsets(i, 4u, offsets);
    const bool holds = load_bool(element(at[1], offsets[1], kBool), kBool);
    move(element(at[0], offsets[0], kIn),
         holds ? element(at[2], offsets[2], kIn) : element(at[3], offsets[3], kIn), kIn);
  }
}
