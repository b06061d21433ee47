// Kernels that move elements and do not read them, by the width of an element in bytes; and random bits.
#include "kernels/device/element.cuh"
#include "kernels/device/indexing.cuh"

namespace backplane::cuda {
namespace {

struct Wide {
  uint64_t half[2];
};

template <class T>
__device__ T moved(const Loop& loop, int operand, int64_t at) {
  return *reinterpret_cast<const T*>(loop.data[operand] != nullptr
                                         ? loop.data[operand] + at
                                         : reinterpret_cast<const char*>(loop.numbers[operand].bytes));
}

template <class T>
__device__ void copy(const Loop& loop) {
  for (uint32_t i = first_index(); i < loop.count; i += index_step()) {
    int64_t at[2];
    place(loop, i, at);
    *reinterpret_cast<T*>(loop.data[0] + at[0]) = moved<T>(loop, 1, at[1]);
  }
}

template <class T>
__device__ void where(const Loop& loop) {
  for (uint32_t i = first_index(); i < loop.count; i += index_step()) {
    int64_t at[4];
    place(loop, i, at);
    const bool holds = moved<bool>(loop, 1, at[1]);
    *reinterpret_cast<T*>(loop.data[0] + at[0]) = holds ? moved<T>(loop, 2, at[2]) : moved<T>(loop, 3, at[3]);
  }
}

template <class T>
__device__ void index(const Indexing& indexing) {
  const uint64_t count = uint64_t{indexing.kept.count} * indexing.positions.count;
  for (uint64_t i = first_index(); i < count; i += index_step()) {
    const auto p = static_cast<uint32_t>(i / indexing.kept.count), k = static_cast<uint32_t>(i % indexing.kept.count);
    const Offsets kept = place(indexing.kept, k), position = place(indexing.positions, p);
    int64_t offset;
    if (!indexed_offset(indexing, p, offset)) continue;
    *reinterpret_cast<T*>(indexing.picked + kept.out + position.out) =
        *reinterpret_cast<const T*>(indexing.x + kept.x + offset);
  }
}

// The number of the place that each index position points to, or `nowhere`; and its offset.
template <class U>
__device__ void number_places(const Indexing& indexing, U* numbers, int64_t* offsets, uint64_t nowhere) {
  for (uint32_t p = first_index(); p < indexing.positions.count; p += index_step()) {
    int64_t offset;
    uint64_t number;
    const bool found = indexed_place(indexing, p, offset, number);
    numbers[p] = static_cast<U>(found ? number : nowhere);
    offsets[p] = offset;
  }
}

}  // namespace
}  // namespace backplane::cuda

using backplane::cuda::Indexing;
using backplane::cuda::Loop;

#define BP_CUDA_MOVES(width, type)                                                                                    \
  extern "C" __global__ void copy_##width(const __grid_constant__ Loop loop) { backplane::cuda::copy<type>(loop); }   \
  extern "C" __global__ void where_##width(const __grid_constant__ Loop loop) { backplane::cuda::where<type>(loop); } \
  extern "C" __global__ void index_##width(const __grid_constant__ Indexing indexing) {                               \
    backplane::cuda::index<type>(indexing);                                                                           \
  }
BP_CUDA_MOVES(1, uint8_t)
BP_CUDA_MOVES(2, uint16_t)
BP_CUDA_MOVES(4, uint32_t)
BP_CUDA_MOVES(8, uint64_t)
BP_CUDA_MOVES(16, backplane::cuda::Wide)

extern "C" __global__ void number_places_4(const __grid_constant__ Indexing indexing, uint32_t* numbers,
                                           int64_t* offsets, uint64_t nowhere) {
  backplane::cuda::number_places(indexing, numbers, offsets, nowhere);
}
extern "C" __global__ void number_places_8(const __grid_constant__ Indexing indexing, uint64_t* numbers,
                                           int64_t* offsets, uint64_t nowhere) {
  backplane::cuda::number_places(indexing, numbers, offsets, nowhere);
}

// Philox 4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011): words of 32
// bits, four for each count from `counter` on.
extern "C" __global__ void random_words(uint32_t* out, int64_t words, uint64_t key, uint64_t counter) {
  const int64_t blocks = (words + 3) / 4;
  for (int64_t b = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; b < blocks; b += int64_t{gridDim.x} * blockDim.x) {
    const uint64_t count = counter + static_cast<uint64_t>(b);
    uint32_t low = static_cast<uint32_t>(key), high = static_cast<uint32_t>(key >> 32);
    uint32_t x[4] = {static_cast<uint32_t>(count), static_cast<uint32_t>(count >> 32), 0, 0};
#pragma unroll
    for (int round = 0; round < 10; ++round) {
      const uint32_t first_high = __umulhi(0xD2511F53u, x[0]), first_low = 0xD2511F53u * x[0];
      const uint32_t second_high = __umulhi(0xCD9E8D57u, x[2]), second_low = 0xCD9E8D57u * x[2];
      const uint32_t next[4] = {second_high ^ x[1] ^ low, second_low, first_high ^ x[3] ^ high, first_low};
#pragma unroll
      for (int k = 0; k < 4; ++k) x[k] = next[k];
      low += 0x9E3779B9u;
      high += 0xBB67AE85u;
    }
#pragma unroll
    for (int k = 0; k < 4; ++k)
      if (4 * b + k < words) out[4 * b + k] = x[k];
  }
}
