// Attention of one floating dtype without tensor cores. BP_CUDA_ELEMENT is how an element is stored.
#include "kernels/device/attention_tiles.cuh"
#include "kernels/device/lane_tiles.cuh"

namespace backplane::cuda {
using Tiles64 = LaneTiles<BP_CUDA_ELEMENT, kNarrowTile>;
using Tiles128 = LaneTiles<BP_CUDA_ELEMENT, kWideTile>;
}  // namespace backplane::cuda

using namespace backplane::cuda;

BP_CUDA_ATTENTION_KERNELS(64, Tiles64)
BP_CUDA_ATTENTION_KERNELS(128, Tiles128)
