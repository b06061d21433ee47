// The kernel of sketch::wave for Vulkan devices. What happens to an element is the entry's decomposition, which codegen
// has written as a function of scalars. A tensor is the address of its first element.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
// Only what the kernel uses: not every device has every type.
#define BP_SCALAR_WITHOUT_FLOAT64
#define BP_SCALAR_WITHOUT_INT8
#define BP_SCALAR_WITHOUT_INT16
#include "sketch/scalar.glsl"

layout(local_size_x = 256) in;
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Float { float value; };
layout(push_constant, std430) uniform Arguments { uint64_t x, result; int64_t n; float speed; };

void main() {
  const int64_t step = int64_t(gl_NumWorkGroups.x) * 256;  // the workgroups may be fewer than the elements need
  for (int64_t i = int64_t(gl_GlobalInvocationID.x); i < n; i += step)
    Float(result + i * 4).value = sketch_wave_float32(Float(x + i * 4).value, speed);
}
