// Reductions of the rows of a matrix to one row, by op: what the fuser runs on rows that lie in its buffers.
//
// Rows are reduced in leaves of kLeafRows, from the first on; leaves are merged as a binary tree, in which neighbours
// meet first. A caller that keeps this order gets the bits of the op's kernel, for any number of parts.
#pragma once

#include <string_view>

#include "backplane/plugin.hpp"

namespace backplane::cpu {

inline constexpr int64_t kLeafRows = 16;

class ColumnReduction {
 public:
  struct Loops {
    // Do elements of `x` serve as accumulators, and `out` as results?
    bool (*takes)(const void* context, bp_dtype x, bp_dtype out);
    // The accumulators of 1 to kLeafRows rows of n neighbouring elements, x_step bytes apart.
    void (*leaf)(const void* context, bp_dtype dtype, const char* x, int64_t x_step, int64_t rows, int64_t n,
                 char* accumulators);
    void (*merge)(const void* context, bp_dtype dtype, char* accumulators, const char* others, int64_t n);
    // Of `rows` rows in all; results out_step bytes apart. The accumulators are overwritten.
    void (*store)(const void* context, bp_dtype dtype, char* accumulators, int64_t rows, int64_t n, char* out,
                  int64_t out_step);
  };

  // Lives as long as the process.
  ColumnReduction(const char* op, const Loops* loops, const void* context)
      : op_(op), loops_(loops), context_(context), next_(first_) {
    first_ = this;
  }
  ColumnReduction(const ColumnReduction&) = delete;
  ColumnReduction& operator=(const ColumnReduction&) = delete;

  static const ColumnReduction* find(std::string_view op) {
    const ColumnReduction* each = first_;
    while (each != nullptr && each->op_ != op) each = each->next_;
    return each;
  }
  bool takes(bp_dtype x, bp_dtype out) const { return loops_->takes(context_, x, out); }
  void leaf(bp_dtype dtype, const char* x, int64_t x_step, int64_t rows, int64_t n, char* accumulators) const {
    loops_->leaf(context_, dtype, x, x_step, rows, n, accumulators);
  }
  void merge(bp_dtype dtype, char* accumulators, const char* others, int64_t n) const {
    loops_->merge(context_, dtype, accumulators, others, n);
  }
  void store(bp_dtype dtype, char* accumulators, int64_t rows, int64_t n, char* out, int64_t out_step) const {
    loops_->store(context_, dtype, accumulators, rows, n, out, out_step);
  }

 private:
  static inline constinit const ColumnReduction* first_ = nullptr;
  std::string_view op_;
  const Loops* loops_;
  const void* context_;
  const ColumnReduction* next_;
};

}  // namespace backplane::cpu
