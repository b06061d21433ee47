// Tiles of products of matrices of half floats on tensor cores: 4 warps have 16 rows each. As lane_tiles.cuh, which has
// the same members. Rows of up to kHead elements lie side by side and begin at multiples of 16 bytes.
//
// Sides lie in shared memory, a row as pieces of 16 bytes, of which piece c of row r lies at place c ^ (r % 8): neither
// rows of one piece nor pieces of one row share banks.
#pragma once

#include "kernels/attention_arguments.hpp"
#include "kernels/device/matrix.cuh"
#include "kernels/device/tensor_core.cuh"

namespace backplane::cuda {

template <class T, int kHead>
class CoreTiles {
  static constexpr int kRow = kHead * 2, kPieces = kHead / 8;  // bytes of a row, and pieces

 public:
  using Element = T;
  using C = float;
  static constexpr int kBlock = kCoreThreads, kRows = kTileRows, kColumns = kHead <= 64 ? 64 : 32, kOutColumns = kHead;
  static constexpr int kHeldRows = 2, kHeldColumns = kColumns / 4, kHeldOuts = kHead / 4;
  static constexpr int kLanesOfRow = 4, kBlocks = 2;
  // Whether registers hold what is read before products, which take longer than that, and used behind them.
  static constexpr bool kReadsAhead = kHead <= 64;
  static constexpr int kMaskTogether = kHead <= 64 ? kHeldColumns : 4;  // of a row, that are on their way together
  static constexpr int kSide = kColumns * kRow, kSides = 4 * kSide;     // two sides, of this tile and of the next
  // Of a block's second rows, the last 16 kAside elements wait in shared memory, since registers do not hold them.
  static constexpr int kAside = kHead <= 64 ? 0 : 7, kShared = kSides + kAside * kBlock * 16;
  static_assert(kRows * kRow <= kSides, "rows pass through the memory of the sides");

  // As tensor cores leave 16 by 8 sums.
  template <int kCount>
  struct Fragments {
    float at[kCount / 2][4];
    __device__ float& operator()(int i, int j) { return at[j / 2][i * 2 + j % 2]; }
  };
  using Scores = Fragments<kHeldColumns>;
  using Sums = Fragments<kHeldOuts>;
  // A warp's rows, as tensor cores take them; those aside are each lane's own.
  template <int kHeld>
  struct Rows {
    uint4 held[kHeld];
    const uint4* aside;
    __device__ uint4 operator[](int k) const { return k < kHeld ? held[k] : aside[(k - kHeld) * kBlock]; }
  };
  // Where its rows are in shared memory.
  struct Side {
    uint32_t at;
  };

  static __device__ int row(int i) { return threadIdx.x / kWarp * 16 + i * 8 + threadIdx.x % kWarp / 4; }
  static __device__ int column(int j) { return j / 2 * 8 + threadIdx.x % 4 * 2 + j % 2; }

  __device__ explicit CoreTiles(unsigned char* memory)
      : memory_(memory), shared_(static_cast<uint32_t>(__cvta_generic_to_shared(memory))) {}

  template <int kPlace>
  __device__ auto load_rows(const Matrix<T>& matrix, int32_t first) const {
    load<kRows>(shared_, matrix, first);
    arrive();
    constexpr int kHeld = kHead / 16 - (kPlace == 1 ? kAside : 0);
    uint4* const aside = reinterpret_cast<uint4*>(memory_ + kSides) + threadIdx.x;
    Rows<kHeld> rows{{}, aside};
    const uint32_t at = shared_ + threadIdx.x / kWarp * 16 * kRow + side_by_side();
#pragma unroll
    for (int k = 0; k < kHead / 16; ++k) {
      uint32_t pieces[4];
      load_matrices<false>(pieces, at ^ k * 32);
      (k < kHeld ? rows.held[k] : aside[(k - kHeld) * kBlock]) = uint4{pieces[0], pieces[1], pieces[2], pieces[3]};
    }
    __syncthreads();
    return rows;
  }
  __device__ void load_columns(int stage, int place, const Matrix<T>& matrix, int32_t first) const {
    load<kColumns>(columns(stage, place, matrix, first).at, matrix, first);
  }
  __device__ Side columns(int stage, int place, const Matrix<T>&, int32_t) const {
    return {shared_ + (2 * stage + place) * kSide};
  }
  // What was loaded is there, and nobody reads any longer what came before.
  __device__ void arrive() const {
    wait_for_copies();
    __syncthreads();
  }

  // scores += x y^T
  template <class Rows>
  __device__ void add_product(Scores& scores, const Rows& x, const Side& y) const {
    const uint32_t right = y.at + stacked();
#pragma unroll
    for (int k = 0; k < kHead / 16; ++k) {
      const uint4 all = x[k];
      const uint32_t rows[4] = {all.x, all.y, all.z, all.w};
#pragma unroll
      for (int n = 0; n < kColumns / 16; ++n) {
        uint32_t pieces[4];
        load_matrices<false>(pieces, (right ^ k * 32) + n * 16 * kRow);
        cuda::add_product<T>(scores.at[2 * n], rows, pieces[0], pieces[1]);
        cuda::add_product<T>(scores.at[2 * n + 1], rows, pieces[2], pieces[3]);
      }
    }
  }

  // sums += weights y; of all of y's columns.
  __device__ void accumulate(Sums& sums, Scores& weights, const Side& y, int32_t) const {
    const uint32_t right = y.at + side_by_side();
#pragma unroll
    for (int k = 0; k < kColumns / 16; ++k) {
      uint32_t rows[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float* pair = weights.at[2 * k + i / 2] + i % 2 * 2;
        rows[i] = packed<T>(pair[0], pair[1]);
      }
#pragma unroll
      for (int n = 0; n < kPieces / 2; ++n) {
        uint32_t pieces[4];
        load_matrices<true>(pieces, (right ^ n * 32) + k * 16 * kRow);
        cuda::add_product<T>(sums.at[2 * n], rows, pieces[0], pieces[1]);
        cuda::add_product<T>(sums.at[2 * n + 1], rows, pieces[2], pieces[3]);
      }
    }
  }

 private:
  // Where a lane's row of four pieces begins that are two side by side below two others, or the other way round.
  static __device__ uint32_t side_by_side() {
    const uint32_t lane = threadIdx.x % kWarp;
    return ((lane >> 3 & 1) * 8 + (lane & 7)) * kRow + ((lane >> 4) ^ (lane & 7)) * 16;
  }
  static __device__ uint32_t stacked() {
    const uint32_t lane = threadIdx.x % kWarp;
    return ((lane >> 4) * 8 + (lane & 7)) * kRow + ((lane >> 3 & 1) ^ (lane & 7)) * 16;
  }

  template <int kCount>
  static __device__ void load(uint32_t at, const Matrix<T>& matrix, int32_t first) {
    constexpr int kAtOnce = kBlock / kPieces;
    static_assert(kAtOnce % 8 == 0, "a thread copies the same place of all its rows");
    const int row = threadIdx.x / kPieces, piece = threadIdx.x % kPieces;
    const bool has_piece = piece * 8 < matrix.columns;
    const T* from = matrix.data + (first + row) * matrix.row + piece * 8;
    const uint32_t to = at + row * kRow + (piece ^ (row & 7)) * 16;
#pragma unroll
    for (int k = 0; k < kCount / kAtOnce; ++k)
      copy_later(to + k * kAtOnce * kRow, from + k * kAtOnce * matrix.row,
                 has_piece && first + row + k * kAtOnce < matrix.rows);
  }

  unsigned char* const memory_;
  const uint32_t shared_;  // its address
};

}  // namespace backplane::cuda
