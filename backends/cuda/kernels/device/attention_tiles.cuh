// Attention and its gradient, whose scores never leave a block (Dao, FlashAttention-2, 2023). A block has a tile of
// rows and goes over the columns' tiles: of queries over keys for the values and for the query's gradient, of keys over
// queries for the gradients of key and value, so that each sum is made by one thread in one order. The tiles' products
// are those of lane_tiles.cuh or core_tiles.cuh.
#pragma once

#include "kernels/attention_arguments.hpp"
#include "kernels/device/approximate.cuh"
#include "kernels/device/attention_mask.cuh"
#include "kernels/device/matrix.cuh"

namespace backplane::cuda {

template <class Tiles>
class TiledAttention {
  using T = typename Tiles::Element;
  using C = typename Tiles::C;
  using Scores = typename Tiles::Scores;
  using Sums = typename Tiles::Sums;
  static constexpr int kRows = Tiles::kRows, kColumns = Tiles::kColumns;

 public:
  __device__ TiledAttention(const AttentionTiles& made, unsigned char* memory, const int32_t& rows)
      : call_(made),
        tiles_(memory),
        rows_(rows),
        first_(static_cast<int32_t>(blockIdx.x % tiles_of(rows)) * kRows),
        first_out_(static_cast<int32_t>(blockIdx.y) * Tiles::kOutColumns),
        factor_(static_cast<C>(made.scale * kLog2E)),
        mask_(made, offset(made.operands[kMask])) {}

  // Results' rows are relative to the largest score so far, and follow it.
  __device__ void values() {
    const auto query = tiles_.template load_rows<0>(matrix(kQuery, call_.queries, call_.features), first_);
    Sums out{};
    C top[Tiles::kHeldRows], sum[Tiles::kHeldRows] = {};
    for (C& highest : top) highest = -infinity();
    each_tile(
        kKey, kValue, 0, end_of_keys(), [](int, int32_t) {},
        [&](int, int32_t from, const auto& key, const auto& value) {
          Scores scores{};
          make_scores<Orientation::kRowsOfQueries>(scores, query, key, from);
#pragma unroll
          for (int i = 0; i < Tiles::kHeldRows; ++i) {
            C highest = top[i];
#pragma unroll
            for (int j = 0; j < Tiles::kHeldColumns; ++j) highest = larger(highest, scores(i, j));
            for (int lanes = 1; lanes < Tiles::kLanesOfRow; lanes *= 2)
              highest = larger(highest, __shfl_xor_sync(~0u, highest, lanes));
            const C low = highest == -infinity() ? C{} : highest, shrink = power_of_two(top[i] - low);
            top[i] = highest;
            sum[i] *= shrink;
#pragma unroll
            for (int j = 0; j < Tiles::kHeldOuts; ++j) out(i, j) *= shrink;
#pragma unroll
            for (int j = 0; j < Tiles::kHeldColumns; ++j) sum[i] += scores(i, j) = power_of_two(scores(i, j) - low);
          }
          tiles_.accumulate(out, scores, value, first_out_);
        });
    T* const lse = data(kLse);
#pragma unroll
    for (int i = 0; i < Tiles::kHeldRows; ++i) {
      for (int lanes = 1; lanes < Tiles::kLanesOfRow; lanes *= 2) sum[i] += __shfl_xor_sync(~0u, sum[i], lanes);
      const C inverse = 1 / (sum[i] == 0 ? C{1} : sum[i]);
#pragma unroll
      for (int j = 0; j < Tiles::kHeldOuts; ++j) out(i, j) *= inverse;
      const int32_t q = first_ + Tiles::row(i);
      if (has(kLse) && first_out_ == 0 && threadIdx.x % Tiles::kLanesOfRow == 0 && q < call_.queries)
        lse[q * call_.operands[kLse].row] = narrow<T>(top[i] * C(kLn2) + scalar::log::of(sum[i]));
    }
    write(kValues, out, C{1}, call_.queries, call_.value_features);
  }

  __device__ void query_grad() {
    const auto query = tiles_.template load_rows<0>(matrix(kQuery, call_.queries, call_.features), first_);
    const auto cotangent =
        tiles_.template load_rows<1>(matrix(kCotangent, call_.queries, call_.value_features), first_);
    Query of[Tiles::kHeldRows];
#pragma unroll
    for (int i = 0; i < Tiles::kHeldRows; ++i) of[i] = query_of(first_ + Tiles::row(i));
    Sums out{};
    each_tile(
        kKey, kValue, 0, end_of_keys(), [](int, int32_t) {},
        [&](int, int32_t from, const auto& key, const auto& value) {
          Scores weights{}, grads{};
          make_scores<Orientation::kRowsOfQueries>(weights, query, key, from);
          tiles_.add_product(grads, cotangent, value);
#pragma unroll
          for (int i = 0; i < Tiles::kHeldRows; ++i)
#pragma unroll
            for (int j = 0; j < Tiles::kHeldColumns; ++j)
              grads(i, j) = power_of_two(weights(i, j) - of[i].lse) * (grads(i, j) - of[i].delta);
          tiles_.accumulate(out, grads, key, first_out_);
        });
    write(kQueryGrad, out, static_cast<C>(call_.scale), call_.queries, call_.features);
  }

  __device__ void key_value_grad() {
    const auto key = tiles_.template load_rows<0>(matrix(kKey, call_.keys, call_.features), first_);
    const auto value = tiles_.template load_rows<1>(matrix(kValue, call_.keys, call_.value_features), first_);
    Sums key_sums{}, value_sums{};
    __shared__ Query of[2][kColumns];
    Query next;  // of the tile after this one
    const auto column_of = [&](int32_t from) {
      return static_cast<int>(threadIdx.x) < kColumns ? query_of(from + static_cast<int32_t>(threadIdx.x)) : Query{};
    };
    const int32_t first_query = call_.causal ? first_ / kColumns * kColumns : 0;
    if (Tiles::kReadsAhead) next = column_of(first_query);
    const auto hand_over = [&](int stage, int32_t from) {
      if (!Tiles::kReadsAhead) next = column_of(from);
      if (threadIdx.x < kColumns) of[stage][threadIdx.x] = next;
    };
    each_tile(kQuery, kCotangent, first_query, call_.queries, hand_over,
              [&](int stage, int32_t from, const auto& query, const auto& cotangent) {
                if (Tiles::kReadsAhead) next = column_of(from + kColumns);
                Scores weights{}, grads{};
                make_scores<Orientation::kRowsOfKeys>(weights, key, query, from);
                tiles_.add_product(grads, value, cotangent);
#pragma unroll
                for (int j = 0; j < Tiles::kHeldColumns; ++j) {
                  const Query found = of[stage][Tiles::column(j)];
#pragma unroll
                  for (int i = 0; i < Tiles::kHeldRows; ++i) {
                    weights(i, j) = power_of_two(weights(i, j) - found.lse);
                    grads(i, j) = weights(i, j) * (grads(i, j) - found.delta);
                  }
                }
                tiles_.accumulate(value_sums, weights, cotangent, first_out_);
                tiles_.accumulate(key_sums, grads, query, first_out_);
              });
    write(kKeyGrad, key_sums, static_cast<C>(call_.scale), call_.keys, call_.features);
    write(kValueGrad, value_sums, C{1}, call_.keys, call_.value_features);
  }

 private:
  static constexpr double kLog2E = 1.4426950408889634, kLn2 = 0.6931471805599453;

  static __device__ uint32_t tiles_of(int32_t rows) { return (static_cast<uint32_t>(rows) + kRows - 1) / kRows; }
  static __device__ C infinity() { return static_cast<C>(__builtin_huge_valf()); }
  static __device__ C larger(C x, C y) { return y > x ? y : x; }
  static __device__ C power_of_two(C x) {
    if constexpr (kSame<C, float>)
      return exp2_approximate(x);
    else
      return scalar::exp2::of(x);
  }

  __device__ bool has(int operand) const { return call_.operands[operand].data != nullptr; }
  __device__ T* data(int operand) const {
    return reinterpret_cast<T*>(call_.operands[operand].data) + offset(call_.operands[operand]);
  }
  __device__ int64_t offset(const AttentionTiles::Operand& operand) const {
    int64_t sum = 0;
    uint32_t i = blockIdx.x / tiles_of(rows_);  // in the batch; it is asked for too seldom to be kept
#pragma unroll 1
    for (int d = 0; d < call_.rank; ++d) {
      const uint32_t rest = divide(i, call_.sizes[d]);
      sum += (i - rest * call_.sizes[d].size) * operand.batch[d];
      i = rest;
    }
    return sum;
  }
  __device__ Matrix<T> matrix(int operand, int32_t rows, int32_t columns) const {
    const AttentionTiles::Operand& found = call_.operands[operand];
    return {data(operand), found.row, found.column, rows, columns};
  }

  // body(stage, from, x, y) for the tiles of two operands' rows from `first` to `end`, which are the columns of scores;
  // the next tile is on its way meanwhile. Between before(stage, from) and the body is a barrier, and two stages take
  // turns.
  template <class Before, class F>
  __device__ void each_tile(int x, int y, int32_t first, int32_t end, Before before, F body) {
    const bool of_keys = x == kKey;
    const auto xs = matrix(x, of_keys ? call_.keys : call_.queries, call_.features);
    const auto ys = matrix(y, of_keys ? call_.keys : call_.queries, call_.value_features);
    const auto load = [&](int stage, int32_t from) {
      tiles_.load_columns(stage, 0, xs, from), tiles_.load_columns(stage, 1, ys, from);
    };
    if (first < end) load(0, first);
    int stage = 0;
    for (int32_t from = first; from < end; from += kColumns, stage = 1 - stage) {
      before(stage, from);
      tiles_.arrive();
      if (from + kColumns < end) load(1 - stage, from + kColumns);
      body(stage, from, tiles_.columns(stage, 0, xs, from), tiles_.columns(stage, 1, ys, from));
    }
  }

  __device__ int32_t end_of_keys() const { return call_.causal ? min(call_.keys, first_ + kRows) : call_.keys; }
  __device__ bool attends(int32_t q, int32_t k) const {
    return q < call_.queries && k < call_.keys && !(call_.causal && k > q);
  }

  // f(query, key, scores...) for those that a thread has of a tile.
  template <Orientation kOrientation, class F, class... Tile>
  __device__ void each_score(int32_t from, F f, Tile&... tiles) const {
#pragma unroll
    for (int i = 0; i < Tiles::kHeldRows; ++i)
#pragma unroll
      for (int j = 0; j < Tiles::kHeldColumns; ++j) {
        const int32_t row = first_ + Tiles::row(i), column = from + Tiles::column(j);
        f(kOrientation == Orientation::kRowsOfQueries ? row : column,
          kOrientation == Orientation::kRowsOfQueries ? column : row, tiles(i, j)...);
      }
  }

  // In powers of two, of the products of rows and columns; -infinity where a query does not attend to a key.
  template <Orientation kOrientation, class Rows, class Columns>
  __device__ void make_scores(Scores& scores, const Rows& rows, const Columns& columns, int32_t from) {
    constexpr int32_t kQueries = kOrientation == Orientation::kRowsOfQueries ? kRows : kColumns,
                      kKeys = kRows + kColumns - kQueries;
    const int32_t q = kOrientation == Orientation::kRowsOfQueries ? first_ : from, k = first_ + from - q;
    const bool whole = q + kQueries <= call_.queries && k + kKeys <= call_.keys && !(call_.causal && k + kKeys - 1 > q);
    const bool chooses = mask_.chooses();
    const auto add = [=](C& score, C added) {
      score = chooses && added != 0 ? added : fma(added, C(kLog2E), score * factor_);
    };
    if (!has(kMask)) {
      tiles_.add_product(scores, rows, columns);
      each_score<kOrientation>(
          from, [=](int32_t, int32_t, C& score) { score *= factor_; }, scores);
    } else if constexpr (Tiles::kReadsAhead) {
      Scores mask;
      mask_.template each_added<kOrientation>(mask, first_, from, [](C& to, C added) { to = added; });
      tiles_.add_product(scores, rows, columns);
      each_score<kOrientation>(
          from, [=](int32_t, int32_t, C& score, C added) { add(score, added); }, scores, mask);
    } else {
      tiles_.add_product(scores, rows, columns);
      mask_.template each_added<kOrientation>(scores, first_, from, add);
    }
    if (!whole)
      each_score<kOrientation>(
          from,
          [=](int32_t of_query, int32_t of_key, C& score) { score = attends(of_query, of_key) ? score : -infinity(); },
          scores);
  }

  // What the gradient knows of a query: its lse, in powers of two, and delta. Without a key its weights are 0.
  struct Query {
    C lse, delta;
  };
  __device__ Query query_of(int32_t q) const {
    const C lse = matrix(kLse, call_.queries, 1).at(q, 0) * C(kLog2E);
    return {lse == -infinity() ? infinity() : lse, matrix(kDelta, call_.queries, 1).at(q, 0)};
  }

  __device__ void write(int operand, Sums& sums, C scale, int32_t rows, int32_t columns) const {
    if (!has(operand)) return;
    T* const to = data(operand);
    const int64_t row = call_.operands[operand].row, column = call_.operands[operand].column;
#pragma unroll
    for (int i = 0; i < Tiles::kHeldRows; ++i) {
      const int32_t r = first_ + Tiles::row(i);
#pragma unroll
      for (int j = 0; j < Tiles::kHeldOuts; ++j) {
        const int32_t c = first_out_ + Tiles::column(j);
        if (r < rows && c < columns) to[r * row + c * column] = narrow<T>(sums(i, j) * scale);
      }
    }
  }

  const AttentionTiles& call_;
  Tiles tiles_;
  const int32_t& rows_;  // that the blocks share
  const int32_t first_, first_out_;
  const C factor_;
  const AttentionMask<Tiles> mask_;
};

}  // namespace backplane::cuda

// The three kernels with these tiles.
#define BP_CUDA_ATTENTION_KERNEL(name, tiles, rows)                           \
  extern "C" __global__ void __launch_bounds__(tiles::kBlock, tiles::kBlocks) \
      name(const __grid_constant__ backplane::cuda::AttentionTiles call) {    \
    __shared__ __align__(256) unsigned char memory[tiles::kShared];           \
    backplane::cuda::TiledAttention<tiles>(call, memory, call.rows).name();   \
  }
#define BP_CUDA_ATTENTION_KERNELS(tiles)               \
  BP_CUDA_ATTENTION_KERNEL(values, tiles, queries)     \
  BP_CUDA_ATTENTION_KERNEL(query_grad, tiles, queries) \
  BP_CUDA_ATTENTION_KERNEL(key_value_grad, tiles, keys)
