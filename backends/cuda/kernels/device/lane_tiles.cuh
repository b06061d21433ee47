// Tiles of products of matrices by ordinary arithmetic, of one floating dtype: 256 threads, 16 by 16, have kRows by
// kColumns sums, each thread rows that follow each other, and columns as one access of shared memory reads them. As
// core_tiles.cuh, which has the same members.
#pragma once

#include "kernels/attention_arguments.hpp"
#include "kernels/device/matmul.cuh"
#include "kernels/device/matrix.cuh"

namespace backplane::cuda {

template <class T, int kOut>
class LaneTiles {
 public:
  using Element = T;
  using C = Compute<T>;
  static constexpr int kBlock = kLaneThreads, kRows = kTileRows, kColumns = sizeof(C) == 8 ? 32 : 64,
                       kOutColumns = kOut;
  static constexpr int kHeldRows = 4, kHeldColumns = kColumns / 16, kHeldOuts = kOut / 16;
  static constexpr int kLanesOfRow = 16;
  static constexpr bool kReadsAhead = false;  // registers do not hold what is read before products,
  static constexpr int kMaskTogether = 1;     // nor more of a mask
  // On a multiprocessor, at least; 0: as the compiler likes, which for others spills rather than leave one alone.
  static constexpr int kBlocks = kSame<T, float> ? 0 : 1;

  struct Scores {
    C at[kHeldRows][kHeldColumns];
    __device__ C& operator()(int i, int j) { return at[i][j]; }
  };
  struct Sums {
    C at[kHeldRows][kHeldOuts];
    __device__ C& operator()(int i, int j) { return at[i][j]; }
  };
  // Rows of a matrix from `first` on.
  struct Side {
    Matrix<T> matrix;
    int32_t first;
  };

  static __device__ int row(int i) { return threadIdx.x / 16 * kHeldRows + i; }
  static __device__ int column(int j) {
    return j / kTogether * 16 * kTogether + threadIdx.x % 16 * kTogether + j % kTogether;
  }

  __device__ explicit LaneTiles(unsigned char* memory) : shared_(*reinterpret_cast<Shared*>(memory)) {}

  // Products read from global memory.
  template <int>
  __device__ Side load_rows(const Matrix<T>& matrix, int32_t first) const {
    return {matrix, first};
  }
  __device__ void load_columns(int, int, const Matrix<T>&, int32_t) const {}
  __device__ Side columns(int, int, const Matrix<T>& matrix, int32_t first) const { return {matrix, first}; }
  __device__ void arrive() const { __syncthreads(); }

  // scores += x y^T
  __device__ void add_product(Scores& scores, const Side& x, const Side& y) {
    C left[kRows / 16], right[kColumns / 16];
    fetch(left, x, 0), fetch(right, y, 0);
    for (int32_t from = 0; from < x.matrix.columns; from += kDepth) {
      __syncthreads();  // nobody reads any longer what was there
      put(shared_.sides.x, left), put(shared_.sides.y, right);
      __syncthreads();
      if (from + kDepth < x.matrix.columns) fetch(left, x, from + kDepth), fetch(right, y, from + kDepth);
#pragma unroll
      for (int k = 0; k < kDepth; ++k) multiply_held(scores.at, shared_.sides.x[k], shared_.sides.y[k]);
    }
  }

  // sums += weights y, of y's columns from `first_out` on
  __device__ void accumulate(Sums& sums, Scores& weights, const Side& y, int32_t first_out) {
    C rows[kDepth * kOut / kBlock];
    const auto fetch_rows = [&](int32_t from) {
#pragma unroll
      for (int i = 0; i < kDepth * kOut / kBlock; ++i) {
        const int at = threadIdx.x + i * kBlock;
        rows[i] = y.matrix.at(y.first + from + at / kOut, first_out + at % kOut);
      }
    };
    fetch_rows(0);
    __syncthreads();
#pragma unroll
    for (int j = 0; j < kHeldColumns; ++j)
#pragma unroll
      for (int i = 0; i < kHeldRows; ++i) shared_.weights[column(j)][row(i)] = weights(i, j);
    for (int from = 0; from < kColumns; from += kDepth) {
      if (from > 0) __syncthreads();
#pragma unroll
      for (int i = 0; i < kDepth * kOut / kBlock; ++i) (&shared_.rows[0][0])[threadIdx.x + i * kBlock] = rows[i];
      __syncthreads();
      if (from + kDepth < kColumns) fetch_rows(from + kDepth);
#pragma unroll
      for (int k = 0; k < kDepth; ++k) multiply_held(sums.at, shared_.weights[from + k], shared_.rows[k]);
    }
  }

 private:
  static constexpr int kDepth = 16, kTogether = 16 / sizeof(C), kPadded = kRows + kTogether;

  struct Sides {
    C x[kDepth][kPadded];
    C y[kDepth][kColumns + kTogether];
  };
  struct Shared {
    C weights[kColumns][kPadded];
    union {
      Sides sides;
      C rows[kDepth][kOut];
    };
  };

  // The next kDepth columns of a side's rows, 16 rows at a time.
  template <int kCount>
  static __device__ void fetch(C (&to)[kCount], const Side& side, int32_t from) {
#pragma unroll
    for (int i = 0; i < kCount; ++i)
      to[i] = side.matrix.at(side.first + threadIdx.x / kDepth + i * 16, from + threadIdx.x % kDepth);
  }
  template <int kCount, int kSide>
  static __device__ void put(C (&to)[kDepth][kSide], const C (&values)[kCount]) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) to[threadIdx.x % kDepth][threadIdx.x / kDepth + i * 16] = values[i];
  }

  template <int kCount>
  static __device__ void multiply_held(C (&sums)[kHeldRows][kCount], const C* x, const C* y) {
    C left[kHeldRows], right[kCount];
#pragma unroll
    for (int i = 0; i < kHeldRows; ++i) left[i] = x[row(i)];
#pragma unroll
    for (int j = 0; j < kCount; ++j) right[j] = y[column(j)];
#pragma unroll
    for (int i = 0; i < kHeldRows; ++i)
#pragma unroll
      for (int j = 0; j < kCount; ++j) sums[i][j] = multiply_add(left[i], right[j], sums[i][j]);
  }

  Shared& shared_;

 public:
  static constexpr int kShared = sizeof(Shared);
};

}  // namespace backplane::cuda
