// Reductions of all elements of a tensor to one, by op: what the fuser runs on elements that pass through its buffers.
//
// Elements are reduced in leaves, and leaves are merged as the op's kernel does it for a tensor in one piece: code that
// keeps to that order gets its bits.
#pragma once

#include <string_view>
#include <vector>

#include "backplane/plugin.hpp"

namespace backplane::cpu {

class WholeReduction {
 public:
  struct Loops {
    // Do elements of `x` serve as accumulators, and `out` as the result?
    bool (*takes)(const void* context, bp_dtype x, bp_dtype out);
    // The accumulator of n neighbouring elements.
    void (*leaf)(const void* context, bp_dtype dtype, const char* x, int64_t n, char* accumulator);
    // The result of n elements from the accumulators of their leaves, which are overwritten.
    void (*store)(const void* context, bp_dtype dtype, char* leaves, int64_t n, char* out);
  };

  // Lives as long as the process.
  WholeReduction(const char* op, const Loops* loops, const void* context)
      : op_(op), loops_(loops), context_(context), next_(first_) {
    first_ = this;
  }
  WholeReduction(const WholeReduction&) = delete;
  WholeReduction& operator=(const WholeReduction&) = delete;

  static const WholeReduction* find(std::string_view op) {
    const WholeReduction* each = first_;
    while (each != nullptr && each->op_ != op) each = each->next_;
    return each;
  }
  bool takes(bp_dtype x, bp_dtype out) const { return loops_->takes(context_, x, out); }
  void leaf(bp_dtype dtype, const char* x, int64_t n, char* accumulator) const {
    loops_->leaf(context_, dtype, x, n, accumulator);
  }
  void store(bp_dtype dtype, char* leaves, int64_t n, char* out) const {
    loops_->store(context_, dtype, leaves, n, out);
  }

 private:
  static inline constinit const WholeReduction* first_ = nullptr;
  std::string_view op_;
  const Loops* loops_;
  const void* context_;
  const WholeReduction* next_;
};

inline constexpr int64_t kLongestLeaf = 2048;  // elements
// Where the leaves of n elements begin, and n.
std::vector<int64_t> leaves_of_whole(int64_t n);

}  // namespace backplane::cpu
