// conv2d and its two adjoints. Compiled once per floating dtype: BP_CUDA_ELEMENT is how an element is stored.
#include "kernels/device/convolution.cuh"

namespace backplane::cuda {
namespace {

using T = BP_CUDA_ELEMENT;

template <int kEach, bool kPlacesInside, bool kDivided>
__device__ void convolve(const Convolution& call) {
  using Here = Convolver<T, kEach, kPlacesInside, kDivided>;
  __shared__ typename Here::SharedMemory shared;
  Here convolver(call, shared);
  convolver();
}

}  // namespace
}  // namespace backplane::cuda

using backplane::cuda::Convolution;

#define BP_CUDA_CONVOLUTION(name, each, places_inside, divided)                         \
  extern "C" __global__ void __launch_bounds__(backplane::cuda::kConvolutionThreads, 3) \
      name(const __grid_constant__ Convolution call) {                                  \
    backplane::cuda::convolve<each, places_inside, divided>(call);                      \
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
  backplane::cuda::add_slices<backplane::cuda::T>(call);
}
