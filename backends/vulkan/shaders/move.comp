// Copies elements of any dtype, bits as they are, over any strides.
//
// at: result, x. n, kOption: as in loop.glsl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "loop.glsl"

void main() {
  receive();
  const uint count = n[0];
  for (uint i = gl_GlobalInvocationID.x; i < count; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
    int offsets[4];
    loop_offsets(i, 2u, offsets);
    move(element(at[0], offsets[0], kIn), element(at[1], offsets[1], kIn), kIn);
  }
}
