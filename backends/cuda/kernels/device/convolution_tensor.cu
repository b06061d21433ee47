// conv2d and its two adjoints of half floats, from compute capability 8.0 on. Compiled once for each of the two:
// BP_CUDA_ELEMENT is how an element is stored.
#include "kernels/device/convolution_tensor.cuh"

using namespace backplane::cuda;

#define BP_CUDA_CONVOLUTION(name, places_inside, divided)                  \
  extern "C" __global__ void __launch_bounds__(kConvolutionThreads, 3)     \
      name(const __grid_constant__ Convolution call) {                     \
    using Here = TensorConvolver<BP_CUDA_ELEMENT, places_inside, divided>; \
    __shared__ Here::Shared shared;                                        \
    Here(call, shared)();                                                  \
  }
BP_CUDA_CONVOLUTION(taps_inside, false, false)
BP_CUDA_CONVOLUTION(taps_inside_divided, false, true)
BP_CUDA_CONVOLUTION(places_inside, true, false)

extern "C" __global__ void add_slices(const __grid_constant__ Convolution call) {
  backplane::cuda::add_slices<BP_CUDA_ELEMENT>(call);
}
