// Convolutions of float32 and float64: each thread of a block multiplies kEach by 8 elements of its tile. While it
// multiplies one step of the inner dimension, the next is on its way to registers.
#pragma once

#include "kernels/device/convolution_tile.cuh"
#include "kernels/device/matmul.cuh"

namespace backplane::cuda {

template <class T, int kEach, bool kPlacesInside, bool kDivided>
class Convolver : ConvolutionTile<T, 8 * kEach, kConvolutionDepth, kPlacesInside, kDivided> {
  using Tile = ConvolutionTile<T, 8 * kEach, kConvolutionDepth, kPlacesInside, kDivided>;
  using C = Compute<T>;
  static constexpr int kRows = 8 * kEach, kColumns = kConvolutionColumns, kDepth = kConvolutionDepth;
  static constexpr int kPad = 4;  // threads that store one column, or the depth, meet no bank twice

 public:
  struct Shared {
    alignas(32) C left[2][kDepth][kRows + kPad];
    alignas(32) C right[2][kDepth][kColumns + kPad];
    Shown shown[Tile::kShown];
  };

  __device__ Convolver(const Convolution& call, Shared& shared) : Tile(call, shared.shown), shared_(shared) {}

  __device__ void operator()() {
    this->prepare();
    C sums[kEach][8] = {};
    T left[Tile::kLeft], right[Tile::kRight];
    this->fetch(this->begin_, 0, left, right);
    put(0, left, right);
    int now = 0;
    for (uint32_t k = this->begin_; k < this->end_; k += kDepth, now = 1 - now) {
      __syncthreads();
      // Behind the last step are zeros. Where they are left out, the compiler moves the loads behind the products.
      this->fetch(k + kDepth, 1 - now, left, right);
      this->show_taps(k + 2 * kDepth, now);
      multiply(now, sums);
      put(1 - now, left, right);
    }
#pragma unroll
    for (int i = 0; i < kEach; ++i)
#pragma unroll
      for (int j = 0; j < 8; j += 4)
        this->template write<4>(this->row_ + first_row() + i % 4 + i / 4 * 32, this->column_ + first_column() + j * 16,
                                &sums[i][j]);
  }

 private:
  __device__ void put(int buffer, const T (&left)[Tile::kLeft], const T (&right)[Tile::kRight]) {
    const uint32_t k = this->own_step();
#pragma unroll
    for (int i = 0; i < Tile::kLeft; ++i) shared_.left[buffer][k][this->own_line(i)] = widen(left[i]);
#pragma unroll
    for (int i = 0; i < Tile::kRight; ++i) {
      if constexpr (kPlacesInside)
        shared_.right[buffer][k][this->own_line(i)] = widen(right[i]);
      else
        shared_.right[buffer][i][threadIdx.x] = widen(right[i]);
    }
  }

  // Of a tile's rows a thread has four out of each 32, of its columns four out of each 64.
  static __device__ uint32_t first_row() { return threadIdx.x / 16 * 4; }
  static __device__ uint32_t first_column() { return threadIdx.x % 16 * 4; }

  __device__ void multiply(int buffer, C (&sums)[kEach][8]) const {
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
      C x[kEach], y[8];
#pragma unroll
      for (int i = 0; i < kEach; i += 4) copy(&shared_.left[buffer][k][first_row() + i * 8], &x[i]);
#pragma unroll
      for (int j = 0; j < 8; j += 4) copy(&shared_.right[buffer][k][first_column() + j * 16], &y[j]);
#pragma unroll
      for (int i = 0; i < kEach; ++i)
#pragma unroll
        for (int j = 0; j < 8; ++j) sums[i][j] = multiply_add(x[i], y[j], sums[i][j]);
    }
  }
  static __device__ void copy(const C* from, C* to) {
    const auto four = *reinterpret_cast<const Pack<C, 4>*>(from);
#pragma unroll
    for (int k = 0; k < 4; ++k) to[k] = four.at[k];
  }

  Shared& shared_;
};

}  // namespace backplane::cuda
