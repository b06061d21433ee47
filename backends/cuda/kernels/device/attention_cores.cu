// Attention of half floats with a mask, and its gradient, on tensor cores. BP_CUDA_ELEMENT is how an element is stored,
// BP_CUDA_WIDTH how many features there are at most.
#include "kernels/device/attention_tiles.cuh"
#include "kernels/device/core_tiles.cuh"

using namespace backplane::cuda;

using TilesOfWidth = CoreTiles<BP_CUDA_ELEMENT, BP_CUDA_WIDTH>;

BP_CUDA_ATTENTION_KERNELS(TilesOfWidth)
