// Convolutions of half floats on tensor cores: each of a block's four warps multiplies 32 rows by 64 columns of its
// tile, 32 steps of the inner dimension at a time. While it does, the next are on their way to registers.
#pragma once

#include "kernels/device/convolution_tile.cuh"
#include "kernels/device/tensor_core.cuh"

namespace backplane::cuda {

constexpr int kTensorRows = 64;

template <class T, bool kPlacesInside, bool kDivided>
class TensorConvolver : ConvolutionTile<T, kTensorRows, kTensorDepth, kPlacesInside, kDivided> {
  using Tile = ConvolutionTile<T, kTensorRows, kTensorDepth, kPlacesInside, kDivided>;
  static constexpr int kRows = kTensorRows, kColumns = kConvolutionColumns, kDepth = kTensorDepth;
  static constexpr int kPad = 8;  // the rows of a matrix of 8 by 8 meet no bank twice

 public:
  struct Shared {
    alignas(16) T left[2][kRows][kDepth + kPad];
    alignas(16) T right[2][kColumns][kDepth + kPad];
    Shown shown[Tile::kShown];
  };

  __device__ TensorConvolver(const Convolution& call, Shared& shared) : Tile(call, shared.shown), shared_(shared) {}

  __device__ void operator()() {
    this->prepare();
    float sums[2][8][4] = {};
    T left[Tile::kLeft], right[Tile::kRight];
    this->fetch(this->begin_, 0, left, right);
    put(0, left, right);
    int now = 0;
    for (uint32_t k = this->begin_; k < this->end_; k += kDepth, now = 1 - now) {
      __syncthreads();
      const bool more = k + kDepth < this->end_;
      if (more) this->fetch(k + kDepth, 1 - now, left, right);
      this->show_taps(k + 2 * kDepth, now);
      multiply(now, sums);
      if (more) put(1 - now, left, right);
    }
    const uint32_t row = this->row_ + first_row() + lane() / 4,
                   column = this->column_ + first_column() + lane() % 4 * 2;
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int j = 0; j < 8; ++j)
#pragma unroll
        for (int half = 0; half < 2; ++half)
          this->template write<2>(row + 16 * i + 8 * half, column + 8 * j, &sums[i][j][2 * half]);
  }

 private:
  static __device__ uint32_t lane() { return threadIdx.x % kWarp; }
  // Of this warp in the tile.
  static __device__ uint32_t first_row() { return threadIdx.x / kWarp % 2 * 32; }
  static __device__ uint32_t first_column() { return threadIdx.x / kWarp / 2 * 64; }

  __device__ void put(int buffer, const T (&left)[Tile::kLeft], const T (&right)[Tile::kRight]) {
    const uint32_t k = this->own_step();
#pragma unroll
    for (int i = 0; i < Tile::kLeft; ++i) shared_.left[buffer][this->own_line(i)][k] = left[i];
    if constexpr (kPlacesInside) {
#pragma unroll
      for (int i = 0; i < Tile::kRight; ++i) shared_.right[buffer][this->own_line(i)][k] = right[i];
    } else {
#pragma unroll
      for (int i = 0; i < Tile::kRight; i += 8) {
        Pack<T, 8> eight;
#pragma unroll
        for (int j = 0; j < 8; ++j) eight.at[j] = right[i + j];
        *reinterpret_cast<Pack<T, 8>*>(&shared_.right[buffer][threadIdx.x][i]) = eight;
      }
    }
  }

  static __device__ uint32_t address_of(const T& element) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(&element));
  }
  __device__ void multiply(int buffer, float (&sums)[2][8][4]) const {
    uint32_t x[2][2][4];  // of each half of the steps, of 16 rows each
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int i = 0; i < 2; ++i)
        load_matrices<false>(
            x[half][i],
            address_of(shared_.left[buffer][first_row() + 16 * i + lane() % 16][16 * half + lane() / 16 * 8]));
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      uint32_t y[4];
      load_matrices<false>(y, address_of(shared_.right[buffer][first_column() + 8 * j + lane() % 8][lane() / 8 * 8]));
#pragma unroll
      for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int i = 0; i < 2; ++i) add_product<T>(sums[i][j], x[half][i], y[2 * half], y[2 * half + 1]);
    }
  }

  Shared& shared_;
};

}  // namespace backplane::cuda
