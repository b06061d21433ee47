// conv2d and its two adjoints. Compiled for float32 and float64: BP_CUDA_ELEMENT is how an element is stored.
#include "kernels/device/convolution.cuh"

using namespace backplane::cuda;

#define BP_CUDA_CONVOLUTION(name, each, places_inside, divided)            \
  extern "C" __global__ void __launch_bounds__(kConvolutionThreads, 3)     \
      name(const __grid_constant__ Convolution call) {                     \
    using Here = Convolver<BP_CUDA_ELEMENT, each, places_inside, divided>; \
    __shared__ Here::Shared shared;                                        \
    Here(call, shared)();                                                  \
  }
#define BP_CUDA_CONVOLUTIONS(rows, each)                             \
  BP_CUDA_CONVOLUTION(taps_inside_##rows, each, false, false)        \
  BP_CUDA_CONVOLUTION(taps_inside_divided_##rows, each, false, true) \
  BP_CUDA_CONVOLUTION(places_inside_##rows, each, true, false)
BP_CUDA_CONVOLUTIONS(32, 4)
#if !BP_CUDA_IS_DOUBLE
BP_CUDA_CONVOLUTIONS(64, 8)
#endif

extern "C" __global__ void add_slices(const __grid_constant__ Convolution call) {
  backplane::cuda::add_slices<BP_CUDA_ELEMENT>(call);
}
