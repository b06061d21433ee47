// Attention of one dtype of half floats, which the definition BP_CUDA_ELEMENT names, by the features that fit.
#include "kernels/device/attention.cuh"

using namespace backplane::cuda;

extern "C" __global__ void __launch_bounds__(128, 2) attention_64(const __grid_constant__ Attention call) {
  attention<AttentionBlock<BP_CUDA_ELEMENT, 64, 2, 4, 64, 0>>(call);
}
extern "C" __global__ void __launch_bounds__(128, 2) attention_128(const __grid_constant__ Attention call) {
  attention<AttentionBlock<BP_CUDA_ELEMENT, 128, 2, 4, 32, 1>>(call);
}
