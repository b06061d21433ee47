// copy, add, subtract and multiply over up to four dimensions, in words of 32 bits.
//
// Element i of each operand is found by its strides (words; 0 along a broadcast dimension), counted from `start` words
// behind the operand's lowest address, which keeps every index non-negative for views that run backward.
// Copies move bits and never go through float, so that NaN payloads survive.
#version 450
#extension GL_EXT_buffer_reference : require

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint kFunction = 0;  // Shader in runtime/device.hpp

layout(buffer_reference, std430, buffer_reference_align = 4) buffer Words { uint at[]; };

layout(push_constant, std430) uniform Push {
  Words result;
  Words x;
  Words y;
  uint count;
  uint unused;
  uvec4 sizes;  // innermost first
  uvec4 result_strides;
  uvec4 x_strides;
  uvec4 y_strides;
  uvec4 starts;  // of result, x, y
};

void main() {
  for (uint i = gl_GlobalInvocationID.x; i < count; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
    uint rest = i;
    uvec4 at;
    for (int d = 0; d < 4; ++d) {
      at[d] = rest % sizes[d];
      rest /= sizes[d];
    }
    const uvec4 r = at * result_strides, p = at * x_strides, q = at * y_strides;
    const uint to = starts.x + r.x + r.y + r.z + r.w;
    const uint a = x.at[starts.y + p.x + p.y + p.z + p.w];
    if (kFunction == 0) {
      result.at[to] = a;
      continue;
    }
    const float u = uintBitsToFloat(a);
    const float v = uintBitsToFloat(y.at[starts.z + q.x + q.y + q.z + q.w]);
    result.at[to] = floatBitsToUint(kFunction == 1 ? u + v : kFunction == 2 ? u - v : u * v);
  }
}
