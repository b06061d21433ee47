// The kernels of sketch::wave for CUDA devices, one per dtype. What happens to an element is the entry's decomposition,
// which codegen has written as a function of scalars.
#include "sketch/scalar.cuh"

#define WAVE(name, T)                                                                  \
  extern "C" __global__ void name(const T* x, T* out, long long n, T speed) {          \
    const long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x; \
    if (i < n) out[i] = sketch::scalar::wave::of(x[i], speed);                         \
  }
WAVE(wave_float32, float)
WAVE(wave_float64, double)
