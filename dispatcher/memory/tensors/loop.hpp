// Builds the loop descriptor of an elementwise call or a reduction: broadcast operands to the full shape, drop
// dims of size 1, order dims by stride where all operands agree, merge neighbours. Pure.
#pragma once

#include <memory>
#include <vector>

#include "record/shape_rules.hpp"

namespace backplane::core {

// A loop and its numbers, which lie on the stack where they are few: a call of ops within ops has many of these.
struct LoopStorage {
  LoopStorage() {}  // leaves the numbers as they are
  LoopStorage(const LoopStorage&) = delete;
  // Room for the sizes of `rank` dims and for as many strides of each operand, which stand `rank` apart.
  void reserve(int32_t n_operands, int32_t rank);
  int64_t* row(int32_t operand) { return strides + operand * pitch; }

  bp_loop loop;
  int64_t* sizes;
  int64_t* strides;
  int32_t pitch;
  std::vector<bp_loop_index> indices;  // of advanced indexing

 private:
  int64_t few_[96];
  std::unique_ptr<int64_t[]> many_;
};

// operands[i] is nullptr for a number in a tensor position. Outputs come first. The iteration shape is the first
// output's for an elementwise op and `full` (the input's) for a reduction, whose output `out_sizes` has either
// kept dims of size 1 or, with `reduced` naming them, none.
void build_elementwise_loop(const bp_tensor* const* operands, int32_t n_operands, LoopStorage& out);
void build_reduction_loop(const bp_tensor* const* outs, int32_t n_outs, const bp_tensor* const* inputs,
                          int32_t n_inputs, const int32_t* reduced_axes, int32_t n_reduced, LoopStorage& out);

// Of advanced indexing, whose arguments the shape rule has accepted: `list` has an element or NULL for each leading
// axis of x. index reads x into `out`; index_put `writes` values into `out`, of x's shape. x and values are nullptr for
// a number. Dims keep their order, and merge with neighbours of their kind alone.
void build_index_loop(const bp_tensor& out, const bp_tensor* x, std::span<bp_tensor* const> list, bool writes,
                      const bp_tensor* values, LoopStorage& loop);

}  // namespace backplane::core
