// The shaders of elementwise regions (region.glsl): the linker writes `prepare` and `region` anew.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "region.glsl"

void prepare() {}
void region(uint i) { every_function(i); }

void main() {
  receive();
  const uint count = push.count;
  prepare();
  for (uint i = gl_GlobalInvocationID.x; i < count; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) region(i);
}
