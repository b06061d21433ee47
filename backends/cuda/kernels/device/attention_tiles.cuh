// Attention and its gradient, whose scores never leave a block (Dao, FlashAttention-2, 2023). A block has a tile of
// rows and goes over the columns' tiles: of queries over keys for the values and for the query's gradient, of keys over
// queries for the gradients of key and value, so that each sum is made by one thread in one order. The tiles' products
// are those of lane_tiles.cuh or core_tiles.cuh.
#pragma once

#include "kernels/attention_arguments.hpp"
#include "kernels/device/approximate.cuh"
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
        mask_offset_(offset(made.operands[kMask])) {}

  // Results' rows are relative to the largest score so far, and follow it.
  __device__ void values() {
    const auto query = tiles_.load_rows(0, matrix(kQuery, call_.queries, call_.features), first_);
    const auto keys = matrix(kKey, call_.keys, call_.features);
    const auto values = matrix(kValue, call_.keys, call_.value_features);
    Sums out{};
    C top[Tiles::kHeldRows], sum[Tiles::kHeldRows] = {};
    for (C& highest : top) highest = -infinity();
    for (int32_t from = 0; from < end_of_keys(); from += kColumns) {
      tiles_.release();
      const auto key = tiles_.load_columns(0, keys, from), value = tiles_.load_columns(1, values, from);
      tiles_.arrive();
      const bool whole = is_whole(first_, kRows, from, kColumns);
      Scores scores{};
      tiles_.add_product(scores, query, key);
#pragma unroll
      for (int i = 0; i < Tiles::kHeldRows; ++i) {
        C highest = top[i];
#pragma unroll
        for (int j = 0; j < Tiles::kHeldColumns; ++j) {
          scores(i, j) = score(first_ + Tiles::row(i), from + Tiles::column(j), scores(i, j), whole);
          highest = larger(highest, scores(i, j));
        }
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
    }
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
    const auto query = tiles_.load_rows(0, matrix(kQuery, call_.queries, call_.features), first_);
    const auto cotangent = tiles_.load_rows(1, matrix(kCotangent, call_.queries, call_.value_features), first_);
    const auto keys = matrix(kKey, call_.keys, call_.features);
    const auto values = matrix(kValue, call_.keys, call_.value_features);
    const auto lse = matrix(kLse, call_.queries, 1), delta = matrix(kDelta, call_.queries, 1);
    Query of[Tiles::kHeldRows];
#pragma unroll
    for (int i = 0; i < Tiles::kHeldRows; ++i) of[i] = query_of(lse, delta, first_ + Tiles::row(i));
    Sums out{};
    for (int32_t from = 0; from < end_of_keys(); from += kColumns) {
      tiles_.release();
      const auto key = tiles_.load_columns(0, keys, from), value = tiles_.load_columns(1, values, from);
      tiles_.arrive();
      const bool whole = is_whole(first_, kRows, from, kColumns);
      Scores scores{}, grads{};
      tiles_.add_product(scores, query, key);
      tiles_.add_product(grads, cotangent, value);
#pragma unroll
      for (int i = 0; i < Tiles::kHeldRows; ++i)
#pragma unroll
        for (int j = 0; j < Tiles::kHeldColumns; ++j) {
          const int32_t q = first_ + Tiles::row(i), k = from + Tiles::column(j);
          const C weight = power_of_two(score(q, k, scores(i, j), whole) - of[i].lse);
          grads(i, j) = whole || is_inside(q, k) ? weight * (grads(i, j) - of[i].delta) : C{};
        }
      tiles_.accumulate(out, grads, key, first_out_);
    }
    write(kQueryGrad, out, static_cast<C>(call_.scale), call_.queries, call_.features);
  }

  __device__ void key_value_grad() {
    const auto key = tiles_.load_rows(0, matrix(kKey, call_.keys, call_.features), first_);
    const auto value = tiles_.load_rows(1, matrix(kValue, call_.keys, call_.value_features), first_);
    const auto queries = matrix(kQuery, call_.queries, call_.features);
    const auto cotangents = matrix(kCotangent, call_.queries, call_.value_features);
    const auto lse = matrix(kLse, call_.queries, 1), delta = matrix(kDelta, call_.queries, 1);
    Sums key_sums{}, value_sums{};
    for (int32_t from = call_.causal ? first_ / kColumns * kColumns : 0; from < call_.queries; from += kColumns) {
      tiles_.release();
      const auto query = tiles_.load_columns(0, queries, from), cotangent = tiles_.load_columns(1, cotangents, from);
      tiles_.arrive();
      const bool whole = is_whole(from, kColumns, first_, kRows);
      Scores weights{}, grads{};
      tiles_.add_product(weights, key, query);
      tiles_.add_product(grads, value, cotangent);
#pragma unroll
      for (int j = 0; j < Tiles::kHeldColumns; ++j) {
        const int32_t q = from + Tiles::column(j);
        const Query of = query_of(lse, delta, q);
#pragma unroll
        for (int i = 0; i < Tiles::kHeldRows; ++i) {
          const int32_t k = first_ + Tiles::row(i);
          const bool inside = whole || is_inside(q, k);
          weights(i, j) = inside ? power_of_two(score(q, k, weights(i, j), whole) - of.lse) : C{};
          grads(i, j) = inside ? weights(i, j) * (grads(i, j) - of.delta) : C{};
        }
      }
      tiles_.accumulate(value_sums, weights, cotangent, first_out_);
      tiles_.accumulate(key_sums, grads, query, first_out_);
    }
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

  __device__ int32_t end_of_keys() const { return call_.causal ? min(call_.keys, first_ + kRows) : call_.keys; }
  __device__ bool is_inside(int32_t q, int32_t k) const { return q < call_.queries && k < call_.keys; }
  // Whether all of these queries attend to all of these keys, and there is no mask.
  __device__ bool is_whole(int32_t q, int32_t queries, int32_t k, int32_t keys) const {
    return !has(kMask) && is_inside(q + queries - 1, k + keys - 1) && !(call_.causal && k + keys - 1 > q);
  }

  // In powers of two; -infinity where the query does not attend to the key.
  __device__ C score(int32_t q, int32_t k, C product, bool whole) const {
    const C scaled = product * factor_;
    if (whole) return scaled;
    if (!is_inside(q, k) || (call_.causal && k > q)) return -infinity();
    const AttentionTiles::Operand& mask = call_.operands[kMask];
    if (mask.data == nullptr) return scaled;
    const int64_t i = mask_offset_ + q * mask.row + k * mask.column;
    if (call_.mask_dtype == kBool) return mask.data[i] != 0 ? scaled : -infinity();
    return scaled + added(mask.data, i) * C(kLog2E);
  }
  // An element of the mask, as one of the dtype of attention.
  __device__ C added(const char* mask, int64_t i) const {
    switch (call_.mask_dtype) {
      case kFloat16:
        return as_element(reinterpret_cast<const float16*>(mask)[i]);
      case kBfloat16:
        return as_element(reinterpret_cast<const bfloat16*>(mask)[i]);
      case kFloat32:
        return as_element(reinterpret_cast<const float*>(mask)[i]);
      default:
        return as_element(reinterpret_cast<const double*>(mask)[i]);
    }
  }
  template <class In>
  static __device__ C as_element(In x) {
    return widen(narrow<T>(convert<C>(x)));
  }

  // What the gradient knows of a query: its lse, in powers of two, and delta. Without a key its weights are 0.
  struct Query {
    C lse, delta;
  };
  __device__ Query query_of(const Matrix<T>& lse, const Matrix<T>& delta, int32_t q) const {
    const C found = lse.at(q, 0) * C(kLog2E);
    return {found == -infinity() ? infinity() : found, delta.at(q, 0)};
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

  enum Dtype : int32_t { kBool = 0, kFloat16 = 9, kBfloat16 = 10, kFloat32 = 11 };

  const AttentionTiles& call_;
  Tiles tiles_;
  const int32_t& rows_;  // that the blocks share
  const int32_t first_, first_out_;
  const C factor_;
  const int64_t mask_offset_;
};

}  // namespace backplane::cuda

// The three kernels with these tiles; `size`: the columns of results that a block has.
#define BP_CUDA_ATTENTION_KERNEL(name, size, tiles, function, rows)                 \
  extern "C" __global__ void __launch_bounds__(tiles::kBlock, tiles::kBlocks)       \
      name##_##size(const __grid_constant__ backplane::cuda::AttentionTiles call) { \
    __shared__ __align__(256) unsigned char memory[tiles::kShared];                 \
    backplane::cuda::TiledAttention<tiles>(call, memory, call.rows).function();     \
  }
#define BP_CUDA_ATTENTION_KERNELS(size, tiles)                           \
  BP_CUDA_ATTENTION_KERNEL(values, size, tiles, values, queries)         \
  BP_CUDA_ATTENTION_KERNEL(query_grad, size, tiles, query_grad, queries) \
  BP_CUDA_ATTENTION_KERNEL(key_value_grad, size, tiles, key_value_grad, keys)
