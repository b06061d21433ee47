// Kernels that move elements and do not read them, by the width of an element in bytes.
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

// Of a matrix by columns into one by rows: dimension 0 lies side by side in the result, dimension 1 in the operand, and
// the others are a stack of such matrices. By way of shared memory, so that both are read and written in whole pieces.
template <class T>
__device__ void turn(const Loop& loop) {
  __shared__ T square[kSquare][kSquare + 1];
  const uint32_t columns = loop.sizes[0].size, rows = loop.sizes[1].size;
  const uint32_t across = (columns + kSquare - 1) / kSquare, down = (rows + kSquare - 1) / kSquare;
  const uint32_t squares = across * down, stacked = loop.count / columns / rows;
  const uint32_t lane = threadIdx.x % kSquare, first = threadIdx.x / kSquare, step = blockDim.x / kSquare;
  for (uint32_t block = blockIdx.x; block < squares * stacked; block += gridDim.x) {
    int64_t to = 0, from = 0;
    uint32_t rest = block / squares;
    for (int d = 2; d < loop.rank; ++d) {
      const uint32_t next = divide(rest, loop.sizes[d]);
      const int64_t here = rest - next * loop.sizes[d].size;
      to += here * loop.strides[0][d], from += here * loop.strides[1][d];
      rest = next;
    }
    const uint32_t column = block % squares % across * kSquare, row = block % squares / across * kSquare;
    for (uint32_t k = first; k < kSquare; k += step)
      if (column + k < columns && row + lane < rows)
        square[k][lane] = *reinterpret_cast<const T*>(loop.data[1] + from + (column + k) * loop.strides[1][0] +
                                                      (row + lane) * loop.strides[1][1]);
    __syncthreads();
    for (uint32_t k = first; k < kSquare; k += step)
      if (column + lane < columns && row + k < rows)
        *reinterpret_cast<T*>(loop.data[0] + to + (column + lane) * loop.strides[0][0] +
                              (row + k) * loop.strides[0][1]) = square[lane][k];
    __syncthreads();
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

// Contiguous operands, or numbers.
template <class T>
__device__ void where_flat(const Loop& loop) {
  using Values = Pack<T, kWhereTogether>;
  using Choices = Pack<bool, kWhereTogether>;
  Values fixed[2];
  Choices chosen;
  for (int k = 0; k < kWhereTogether; ++k) {
    if (!loop.data[1]) chosen.at[k] = moved<bool>(loop, 1, 0);
    for (int side = 0; side < 2; ++side)
      if (!loop.data[2 + side]) fixed[side].at[k] = moved<T>(loop, 2 + side, 0);
  }
  const uint32_t packs = loop.count / kWhereTogether;
  for (uint32_t p = first_index(); p < packs; p += index_step()) {
    const Choices holds = loop.data[1] ? reinterpret_cast<const Choices*>(loop.data[1])[p] : chosen;
    const Values x = loop.data[2] ? reinterpret_cast<const Values*>(loop.data[2])[p] : fixed[0];
    const Values y = loop.data[3] ? reinterpret_cast<const Values*>(loop.data[3])[p] : fixed[1];
    Values out;
#pragma unroll
    for (int k = 0; k < kWhereTogether; ++k) out.at[k] = holds.at[k] ? x.at[k] : y.at[k];
    reinterpret_cast<Values*>(loop.data[0])[p] = out;
  }
  const int64_t rest = packs * kWhereTogether + first_index();
  if (rest < loop.count)
    reinterpret_cast<T*>(loop.data[0])[rest] =
        moved<bool>(loop, 1, rest) ? moved<T>(loop, 2, rest * sizeof(T)) : moved<T>(loop, 3, rest * sizeof(T));
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
  extern "C" __global__ void turn_##width(const __grid_constant__ Loop loop) { backplane::cuda::turn<type>(loop); }   \
  extern "C" __global__ void where_##width(const __grid_constant__ Loop loop) { backplane::cuda::where<type>(loop); } \
  extern "C" __global__ void where_flat_##width(const __grid_constant__ Loop loop) {                                  \
    backplane::cuda::where_flat<type>(loop);                                                                          \
  }                                                                                                                   \
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
