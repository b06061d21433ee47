// The kernel of sketch::wave for OpenCL devices. What happens to an element is the entry's decomposition, which codegen
// has written as a function of scalars. A tensor is a buffer and the index of its first element.
#include "sketch/scalar.cl"

kernel void wave_float32(global const float* x, ulong x_first, global float* out, ulong out_first, float speed) {
  const size_t i = get_global_id(0);
  out[out_first + i] = sketch_wave_float32(x[x_first + i], speed);
}
