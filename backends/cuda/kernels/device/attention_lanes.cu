// Attention of one floating dtype without tensor cores. BP_CUDA_ELEMENT is how an element is stored, BP_CUDA_WIDTH
// how many features there are at most.
#include "kernels/device/attention_tiles.cuh"
#include "kernels/device/lane_tiles.cuh"

using namespace backplane::cuda;

using TilesOfWidth = LaneTiles<BP_CUDA_ELEMENT, BP_CUDA_WIDTH>;

BP_CUDA_ATTENTION_KERNELS(TilesOfWidth)
