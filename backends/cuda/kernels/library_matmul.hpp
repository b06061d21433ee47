// A batch of products of matrices, in strides, and how much of it cuBLASLt takes.
#pragma once

#include <vector>

#include "kernels/call.hpp"

namespace backplane::cuda {

// Strides in elements.
struct MatrixStrides {
  int64_t row, column;
};
struct BatchDimension {
  int64_t size, x, y, out, added;
};
// out (rows x columns) = x (rows x depth) y (depth x columns), plus the addend, for each position of `batch`,
// outermost dimension first.
struct BatchedProduct {
  int64_t rows, depth, columns;
  MatrixStrides x, y, out, added;
  std::vector<BatchDimension> batch;
};

// Records the product of the call's first two inputs. False: nothing is recorded: the library is missing or does not
// take the dtype, strides or sizes. `added`: nullptr, or the first element of the addend. `copy` writes it to the
// result if the library can read it only there.
bool library_matmul(const Call& call, BatchedProduct product, const char* added, const std::function<void()>& copy);

}  // namespace backplane::cuda
