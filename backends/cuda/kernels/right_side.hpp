// The right side of a system of equations, args[1]: a vector or a stack of matrices that broadcasts with the stack of
// x's.
#pragma once

#include "kernels/factoring.hpp"

namespace backplane::cuda {

class RightSide {
 public:
  explicit RightSide(const Factoring& x);  // refuses sizes that do not fit

  int64_t columns() const { return columns_; }
  int64_t count() const { return count_; }
  std::vector<int64_t> matrices() const;  // which of x's each right side belongs to
  Dimensions stack() const;               // x: where that matrix begins, in bytes
  // The right sides by columns, one behind the other; and the result from there.
  char* load() const;
  void store(char* y) const;

 private:
  std::vector<int64_t> steps_of_matrices(int64_t unit) const;

  const Factoring& x_;
  const bool vector_;
  const int64_t columns_;
  std::vector<int64_t> shape_;  // of the result's stack
  int64_t count_ = 1;
};

}  // namespace backplane::cuda
