// Reductions of contiguous rows to one element each, by op: what the fuser runs on rows that lie in its buffers.
//
// A file of kernels makes its own known through a RowReduction at namespace scope, and no list names it.
#pragma once

#include <string_view>

#include "backplane/plugin.hpp"

namespace backplane::cpu {

// Rows of n >= 1 neighbouring elements, x_step bytes apart; their results, out_step bytes apart.
struct ReducedRows {
  const bp_frame* frame;
  const char* x;
  char* out;
  int64_t rows, n, x_step, out_step;
  bp_dtype x_dtype, out_dtype;
  const bp_value* numbers;  // the op's arguments, of which those are read that are neither tensors nor lists
};

// Lives as long as the process. Results have the same bits as the op's kernel.
class RowReduction {
 public:
  using Run = void (*)(const void* context, const ReducedRows& rows);
  // dtypes: of x.
  RowReduction(const char* op, bp_dtype_mask dtypes, Run run, const void* context = nullptr)
      : op_(op), dtypes_(dtypes), run_(run), context_(context), next_(first_) {
    first_ = this;
  }
  RowReduction(const RowReduction&) = delete;
  RowReduction& operator=(const RowReduction&) = delete;

  static const RowReduction* find(std::string_view op) {
    const RowReduction* row = first_;
    while (row != nullptr && row->op_ != op) row = row->next_;
    return row;
  }
  bool takes(bp_dtype dtype) const { return (dtypes_ & BP_DTYPE_BIT(dtype)) != 0; }
  void run(const ReducedRows& rows) const { run_(context_, rows); }

 private:
  static inline constinit const RowReduction* first_ = nullptr;
  std::string_view op_;
  bp_dtype_mask dtypes_;
  Run run_;
  const void* context_;
  const RowReduction* next_;
};

}  // namespace backplane::cpu
