// Every op of the registry from one or two float32 to a float32, over up to four dimensions, in words of 32 bits.
//
// Element i of each operand is found by its strides (words; 0 along a broadcast dimension), counted from `start` words
// behind the operand's lowest address, which keeps every index non-negative for views that run backward.
// Copies move bits and never go through float, so that NaN payloads survive.
#version 450
#extension GL_EXT_buffer_reference : require
#extension GL_GOOGLE_include_directive : require

#define BP_SCALAR_WITHOUT_INT8
#define BP_SCALAR_WITHOUT_INT16
#define BP_SCALAR_WITHOUT_INT64
#define BP_SCALAR_WITHOUT_FLOAT64
#include "backplane/scalar.glsl"

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

#define BACKPLANE_NUMBER(op, function, number) const uint kNumber_##op = number;
BP_SCALAR_UNARY_float32_float32(BACKPLANE_NUMBER)
const uint kUnary = BP_SCALAR_UNARY_float32_float32_COUNT;

// The specialisation constant leaves one of these.
float result_of(float x, float y) {
  switch (kFunction) {
#define BACKPLANE_UNARY(op, function, number) \
  case number: return function(x);
#define BACKPLANE_BINARY(op, function, number) \
  case BP_SCALAR_UNARY_float32_float32_COUNT + number: return function(x, y);
    BP_SCALAR_UNARY_float32_float32(BACKPLANE_UNARY)
    BP_SCALAR_BINARY_float32_float32(BACKPLANE_BINARY)
  }
  return x;
}

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
    if (kFunction == kNumber_copy) {
      result.at[to] = a;
      continue;
    }
    const uint b = kFunction < kUnary ? 0 : y.at[starts.z + q.x + q.y + q.z + q.w];
    result.at[to] = floatBitsToUint(result_of(uintBitsToFloat(a), uintBitsToFloat(b)));
  }
}
