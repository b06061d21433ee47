// One reduction as it is walked: its tensors' dimensions, split into those that are kept and those that are reduced.
//
// A plan lives for one call and owns nothing.
#pragma once

#include <cstdint>

#include "kernels/reduction/reducer.hpp"
#include "loops/elementwise.hpp"
#include "loops/loop.hpp"

namespace backplane::cpu {

inline constexpr int64_t kStripBytes = 4096;      // accumulators of a group
inline constexpr int64_t kPieceElements = 65536;  // of a long group that is cut: about 20 microseconds

struct ReduceOp {
  Reduction reduction;
  bool mean = false;
  bool needs_elements = false;
};

struct ReduceDims {
  int32_t rank = 0;
  int64_t sizes[kMaxRank];
  int64_t x[kMaxRank];  // strides in bytes
  int64_t out[kMaxRank];
  int64_t count = 1;
  void add(int64_t size, int64_t x_stride, int64_t out_stride) {
    sizes[rank] = size;
    x[rank] = x_stride;
    out[rank++] = out_stride;
    count *= size;
  }
};

struct ReducePlan {
  const bp_frame* frame;
  const ReduceOp* op;
  const Reducer* reducer;
  bp_dtype x_dtype, out_dtype, accumulator;
  int64_t item;  // of an accumulator
  const char* x;
  char* out;
  ReduceDims kept, reduced;  // without the inner dimension
  bool inner_reduced;
  int64_t inner_size, inner_x, inner_out;
  int64_t strips;   // groups along a kept inner dimension
  int64_t divisor;  // of a mean

  int64_t strip() const { return kStripBytes / item; }  // outputs of a group
  int64_t rows() const { return reduced.count; }
  int64_t groups() const { return kept.count * strips; }
  // A group is one row that needs no conversion, and groups are evenly apart.
  bool plain_rows() const {
    return inner_reduced && rows() == 1 && kept.rank <= 1 && (x_dtype == accumulator || half() != nullptr);
  }
  // The loops that read half floats as they lie, else NULL.
  const Reducer::OfHalf* half() const { return inner_x == plugin::kItemSize[x_dtype] ? reducer->of(x_dtype) : nullptr; }
  // The order of the steps changes nothing.
  bool exact() const {
    return accumulator < BP_FLOAT16 || op->reduction == Reduction::kMax || op->reduction == Reduction::kMin;
  }
};

// The steps of a group: elements where the inner dimension is reduced, rows where it is kept.
inline int64_t steps(const ReducePlan& plan) {
  return plan.inner_reduced ? plan.rows() * plan.inner_size : plan.rows();
}

// Computes every output. The result does not depend on how many threads there are.
void run_reduction(const ReducePlan& plan);

// The accumulators of a few rows of n neighbouring accumulators each, as run_reduction makes a leaf of them.
void reduce_leaf(const Reducer& reducer, const char* x, int64_t step, int64_t rows, int64_t item, int64_t n,
                 char* accumulators);
// n results from their accumulators, which a mean divides; `step`: bytes between the results.
void store_columns(const ReducePlan& plan, char* accumulators, int64_t n, char* out, int64_t step);

}  // namespace backplane::cpu
