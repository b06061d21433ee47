// Attention of half floats on tensor cores (Dao, FlashAttention-2, 2023): a block has kQueries queries in registers and
// passes over the keys, kKeys at a time, while the next ones are copied. Scores never leave registers.
//
// Of each query a warp keeps a reference, the sum of exponentials relative to it, and the weighted sum of values. The
// reference follows the largest score only when that is more than 2^kSlack times as large: what is relative to it has
// room for that in both half floats, and most tiles change nothing.
//
// A row of kHead elements in shared memory is pieces of 16 bytes, of which piece c of row r lies at place c ^ (r % 8):
// neither rows of one piece nor pieces of one row share banks.
#pragma once

#include "kernels/attention_arguments.hpp"
#include "kernels/device/approximate.cuh"
#include "kernels/device/tensor_core.cuh"

namespace backplane::cuda {

constexpr float kInfinity = __builtin_huge_valf(), kLowest = -3.4028234663852886e38f;
constexpr float kLn2 = 0.6931471805599453f, kSlack = 8;

// kTiles: of 16 queries, in a warp. kHead: features, padded with zeros; the last 16 kAside of the queries wait in
// shared memory, each lane's where no other reads, since registers do not hold them.
template <class T, int kHead, int kTiles, int kWarps, int kKeys, int kAside>
class AttentionBlock {
  static constexpr int kRow = kHead * 2, kPieces = kHead / 8;  // bytes of a row, and pieces
  static constexpr int kRowsOfWarp = kTiles * 16, kQueries = kWarps * kRowsOfWarp, kBlock = kWarps * 32,
                       kHeld = kHead / 16 - kAside;
  static constexpr int kSide = kKeys * kRow;  // bytes of the keys, and of the values, of one tile
  static_assert(kQueries == kQueryTile && kQueries * kRow <= 4 * kSide, "queries pass through the memory of two tiles");
  static_assert(kBlock / kPieces % 8 == 0, "a thread copies the same place of all its rows");

 public:
  static constexpr int kShared = 4 * kSide + kTiles * kAside * kBlock * 16;

  __device__ __forceinline__ AttentionBlock(const Attention& made, unsigned char* block_memory)
      : call(made),
        memory(block_memory),
        shared(static_cast<uint32_t>(__cvta_generic_to_shared(block_memory))),
        lane(threadIdx.x % kWarp),
        first(query_tile() * kQueries + static_cast<int>(threadIdx.x / kWarp) * kRowsOfWarp) {
    const Offsets at = place(call.query_and_key, batch());
    query = reinterpret_cast<const T*>(call.query) + at.x + query_tile() * kQueries * call.query_row;
    key = reinterpret_cast<const T*>(call.key) + at.out;
    value = reinterpret_cast<const T*>(call.value) + place(call.value_and_lse, batch()).x;
#pragma unroll
    for (int m = 0; m < kTiles; ++m) reference[m][0] = reference[m][1] = kLowest;
  }

  __device__ __forceinline__ void run() {
    load_queries();
    const int last = query_tile() * kQueries + kQueries;
    const int tiles = ((call.causal ? min(call.keys, last) : call.keys) + kKeys - 1) / kKeys;
    if (tiles > 0) copy_tile(0);
    for (int tile = 0; tile < tiles; ++tile) {
      wait_for_copies();
      __syncthreads();  // the tile is there, and nobody reads the one before any longer
      if (tile + 1 < tiles) copy_tile(tile + 1);
      const int from = tile * kKeys;
      if (call.causal && from >= first + kRowsOfWarp) continue;
      absorb(shared + (tile & 1) * 2 * kSide, from);
    }
    finish();
  }

 private:
  __device__ __forceinline__ uint32_t tiles_of_queries() const { return (call.queries + kQueries - 1) / kQueries; }
  __device__ __forceinline__ uint32_t batch() const { return blockIdx.x / tiles_of_queries(); }
  // Those with the most keys first.
  __device__ __forceinline__ int query_tile() const { return tiles_of_queries() - 1 - blockIdx.x % tiles_of_queries(); }

  // Rows of `features` elements, of which `rows` are there.
  template <int kRows>
  __device__ __forceinline__ void copy_rows(uint32_t to, const T* from, int64_t step, int rows, int features) {
    const int row = threadIdx.x / kPieces, piece = threadIdx.x % kPieces;
    constexpr int kAtOnce = kBlock / kPieces;
    const bool has_piece = piece * 8 < features;
    to += row * kRow + (piece ^ (row & 7)) * 16;
    from += row * step + piece * 8;
#pragma unroll
    for (int k = 0; k < kRows / kAtOnce; ++k)
      copy_later(to + k * kAtOnce * kRow, from + k * kAtOnce * step, has_piece && row + k * kAtOnce < rows);
  }
  __device__ __forceinline__ void copy_tile(int tile) {
    const uint32_t to = shared + (tile & 1) * 2 * kSide;
    const int64_t from = int64_t{tile} * kKeys;
    const int rows = call.keys - tile * kKeys;
    copy_rows<kKeys>(to, key + from * call.key_row, call.key_row, rows, call.features);
    copy_rows<kKeys>(to + kSide, value + from * call.value_row, call.value_row, rows, call.value_features);
  }

  // Where a lane's row of four pieces begins that are two side by side below two others, or the other way round.
  __device__ __forceinline__ uint32_t side_by_side() const {
    return ((lane >> 3 & 1) * 8 + (lane & 7)) * kRow + ((lane >> 4) ^ (lane & 7)) * 16;
  }
  __device__ __forceinline__ uint32_t stacked() const {
    return ((lane >> 4) * 8 + (lane & 7)) * kRow + ((lane >> 3 & 1) ^ (lane & 7)) * 16;
  }

  // Into registers, with the sign of the scale.
  __device__ __forceinline__ void load_queries() {
    const int rows = call.queries - query_tile() * kQueries;
    copy_rows<kQueries>(shared, query, call.query_row, rows, call.features);
    wait_for_copies();
    __syncthreads();
    const uint32_t at = shared + threadIdx.x / kWarp * kRowsOfWarp * kRow + side_by_side();
    const uint32_t flip = call.negative ? 0x80008000u : 0;
#pragma unroll
    for (int m = 0; m < kTiles; ++m)
#pragma unroll
      for (int k = 0; k < kHead / 16; ++k) {
        uint32_t pieces[4];
        load_matrices<false>(pieces, (at ^ k * 32) + m * 16 * kRow);
#pragma unroll
        for (int i = 0; i < 4; ++i) pieces[i] ^= flip;
        if (k >= kHeld) aside(m, k - kHeld) = uint4{pieces[0], pieces[1], pieces[2], pieces[3]};
#pragma unroll
        for (int i = 0; i < 4 && k < kHeld; ++i) queries[m][k][i] = pieces[i];
      }
    __syncthreads();
  }

  __device__ __forceinline__ uint4& aside(int m, int k) {
    return reinterpret_cast<uint4*>(memory + 4 * kSide)[(m * kAside + k) * kBlock + threadIdx.x];
  }
  __device__ __forceinline__ void take_queries(uint32_t (&to)[kTiles][4], int k) {
#pragma unroll
    for (int m = 0; m < kTiles; ++m) {
      const uint4 x = k < kHeld ? uint4{queries[m][k][0], queries[m][k][1], queries[m][k][2], queries[m][k][3]}
                                : aside(m, k - kHeld);
      to[m][0] = x.x, to[m][1] = x.y, to[m][2] = x.z, to[m][3] = x.w;
    }
  }

  __device__ __forceinline__ void absorb(uint32_t keys, int from) {
    float scores[kTiles][kKeys / 8][4] = {};
    const uint32_t at = keys + stacked();
#pragma unroll
    for (int k = 0; k < kHead / 16; ++k) {
      uint32_t x[kTiles][4];
      take_queries(x, k);
#pragma unroll
      for (int n = 0; n < kKeys / 16; ++n) {
        uint32_t pieces[4];
        load_matrices<false>(pieces, (at ^ k * 32) + n * 16 * kRow);
#pragma unroll
        for (int m = 0; m < kTiles; ++m) {
          add_product<T>(scores[m][2 * n], x[m], pieces[0], pieces[1]);
          add_product<T>(scores[m][2 * n + 1], x[m], pieces[2], pieces[3]);
        }
      }
    }
    if (from + kKeys > (call.causal ? min(call.keys, first + 1) : call.keys)) hide(scores, from);
    follow(scores);
    add_values(keys + kSide + side_by_side(), scores);
  }

  // Keys that a query does not attend to.
  __device__ __forceinline__ void hide(float (&scores)[kTiles][kKeys / 8][4], int from) {
#pragma unroll
    for (int m = 0; m < kTiles; ++m)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int row = first + m * 16 + lane / 4 + i / 2 * 8;
        const int end = (call.causal ? min(call.keys, row + 1) : call.keys) - from - lane % 4 * 2 - i % 2;
#pragma unroll
        for (int n = 0; n < kKeys / 8; ++n)
          if (n * 8 >= end) scores[m][n][i] = -kInfinity;
      }
  }

  // References that are at least as large as the scores, less the slack.
  __device__ __forceinline__ void follow(const float (&scores)[kTiles][kKeys / 8][4]) {
    float most[kTiles][2];
    bool behind = false;
#pragma unroll
    for (int m = 0; m < kTiles; ++m)
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        most[m][r] = fmaxf(scores[m][0][2 * r], scores[m][0][2 * r + 1]);
#pragma unroll
        for (int n = 1; n < kKeys / 8; ++n)
          most[m][r] = fmaxf(most[m][r], fmaxf(scores[m][n][2 * r], scores[m][n][2 * r + 1]));
        behind = behind || most[m][r] * call.factor > reference[m][r] + kSlack;
      }
    if (!__any_sync(~0u, behind)) return;
#pragma unroll
    for (int m = 0; m < kTiles; ++m)
#pragma unroll
      for (int r = 0; r < 2; ++r) raise(m, r, most[m][r]);
  }
  __device__ __forceinline__ void raise(int m, int r, float most) {
    most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
    most = fmaxf(most, __shfl_xor_sync(~0u, most, 2));
    const float raised = fmaxf(reference[m][r], most * call.factor);
    const float shrink = exp2_approximate(reference[m][r] - raised);
    reference[m][r] = raised;
    sum[m][r] *= shrink;
#pragma unroll
    for (int n = 0; n < kPieces; ++n) out[m][n][2 * r] *= shrink, out[m][n][2 * r + 1] *= shrink;
  }

  __device__ __forceinline__ void add_values(uint32_t at, const float (&scores)[kTiles][kKeys / 8][4]) {
#pragma unroll
    for (int k = 0; k < kKeys / 16; ++k) {
      uint32_t weights[kTiles][4];
#pragma unroll
      for (int m = 0; m < kTiles; ++m)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int r = i % 2;
          const float* pair = scores[m][2 * k + i / 2] + 2 * r;
          const float x = exp2_approximate(fmaf(pair[0], call.factor, -reference[m][r]));
          const float y = exp2_approximate(fmaf(pair[1], call.factor, -reference[m][r]));
          sum[m][r] += x + y;
          weights[m][i] = packed<T>(x, y);
        }
#pragma unroll
      for (int n = 0; n < kPieces / 2; ++n) {
        uint32_t pieces[4];
        load_matrices<true>(pieces, (at ^ n * 32) + k * 16 * kRow);
#pragma unroll
        for (int m = 0; m < kTiles; ++m) {
          add_product<T>(out[m][2 * n], weights[m], pieces[0], pieces[1]);
          add_product<T>(out[m][2 * n + 1], weights[m], pieces[2], pieces[3]);
        }
      }
    }
  }

  // Results pass through the warp's part of shared memory, so that they leave 16 bytes at a time.
  __device__ __forceinline__ void finish() {
    __syncthreads();
    unsigned char* at = memory + threadIdx.x / kWarp * kRowsOfWarp * kRow;
    T* lse = reinterpret_cast<T*>(call.lse) + place(call.value_and_lse, batch()).out + first * call.lse_step;
#pragma unroll
    for (int m = 0; m < kTiles; ++m)
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        sum[m][r] += __shfl_xor_sync(~0u, sum[m][r], 1);
        sum[m][r] += __shfl_xor_sync(~0u, sum[m][r], 2);
        const float inverse = 1 / (sum[m][r] == 0 ? 1.0f : sum[m][r]);
        const int row = m * 16 + r * 8 + lane / 4;
#pragma unroll
        for (int n = 0; n < kPieces; ++n)
          *reinterpret_cast<uint32_t*>(at + row * kRow + (n ^ (row & 7)) * 16 + lane % 4 * 4) =
              packed<T>(out[m][n][2 * r] * inverse, out[m][n][2 * r + 1] * inverse);
        if (call.lse && lane % 4 == 0 && first + row < call.queries)
          lse[row * call.lse_step] = narrow<T>((reference[m][r] + log2_approximate(sum[m][r])) * kLn2);
      }
    __syncwarp();
    if (call.values) write_values(at);
  }
  __device__ __forceinline__ void write_values(const unsigned char* at) {
    T* to = reinterpret_cast<T*>(call.values) + place(call.results, batch()).out + first * call.values_row;
#pragma unroll 4
    for (int i = lane; i < kRowsOfWarp * kPieces; i += kWarp) {
      const int row = i / kPieces, piece = i % kPieces;
      if (first + row < call.queries && piece * 8 < call.value_features)
        *reinterpret_cast<uint4*>(to + row * call.values_row + piece * 8) =
            *reinterpret_cast<const uint4*>(at + row * kRow + (piece ^ (row & 7)) * 16);
    }
  }

  const Attention& call;
  unsigned char* const memory;
  const uint32_t shared;  // the memory's address
  const int lane, first;  // first: of the warp's queries
  const T *query, *key, *value;
  uint32_t queries[kTiles][kHeld][4];
  float out[kTiles][kPieces][4] = {};
  float sum[kTiles][2] = {};
  float reference[kTiles][2];  // in powers of two
};

// kShared bytes of the block's memory.
template <class Block>
__device__ __forceinline__ void attention(const Attention& call) {
  __shared__ __align__(256) unsigned char memory[Block::kShared];
  Block(call, memory).run();
}

}  // namespace backplane::cuda
