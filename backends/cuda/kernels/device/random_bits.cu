// Random bits, and the integers and bools that are made of them.
#include "kernels/device/philox.cuh"

namespace backplane::cuda {
namespace {

// Integers that are as wide as T, signed ones too.
template <class T>
__device__ void integers(const IntegerDraw& call) {
  draw_groups<T, 2>(call.draw, [&](uint64_t first, T(&elements)[2]) {
    uint32_t words[4];
    philox_words(words, call.draw, 2 * first);
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      // word % width: the product with the inverse is the quotient, or one less.
      const uint64_t word = wide_word(words, k);
      const uint64_t rest = word - __umul64hi(word, call.inverse) * call.width;
      const uint64_t place = rest < call.width ? rest : rest - call.width;
      elements[k] = static_cast<T>(place + static_cast<uint64_t>(call.low));
    }
  });
}

}  // namespace
}  // namespace backplane::cuda

using backplane::cuda::Draw;
using backplane::cuda::IntegerDraw;

extern "C" __global__ void random_words(const __grid_constant__ Draw draw) {
  backplane::cuda::draw_groups<uint32_t, 4>(
      draw, [&](uint64_t first, uint32_t(&words)[4]) { backplane::cuda::philox_words(words, draw, first); });
}

extern "C" __global__ void bernoulli(const __grid_constant__ Draw draw, float p) {
  backplane::cuda::draw_groups<bool, 4>(draw, [&](uint64_t first, bool(&elements)[4]) {
    uint32_t words[4];
    backplane::cuda::philox_words(words, draw, first);
#pragma unroll
    for (int k = 0; k < 4; ++k) elements[k] = static_cast<float>(words[k] >> 8) * 0x1p-24f < p;
  });
}

#define BP_CUDA_INTEGERS(width, type)                                                    \
  extern "C" __global__ void randint_##width(const __grid_constant__ IntegerDraw call) { \
    backplane::cuda::integers<type>(call);                                               \
  }
BP_CUDA_INTEGERS(1, uint8_t)
BP_CUDA_INTEGERS(2, uint16_t)
BP_CUDA_INTEGERS(4, uint32_t)
BP_CUDA_INTEGERS(8, uint64_t)
