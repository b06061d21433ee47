// One matrix product, C = A B, on one thread: OpenBLAS for float32, float64 and the complex types, own loops for the
// rest.
#pragma once

#include <cstdint>

#include "backplane/abi/base.h"

namespace backplane::cpu {

// A strided matrix; strides in elements.
struct Matrix {
  char* data;
  int64_t rows, cols;
  int64_t row_stride, col_stride;
};

// OpenBLAS takes it as it is: one stride is 1, the other a leading dimension.
bool fits_blas(const Matrix& m);

// How BLAS takes one that fits: by rows, or as the transpose of a matrix by rows; how far the rows are apart.
struct BlasOperand {
  bool transposed;
  int64_t leading;
};
BlasOperand blas_operand(const Matrix& m);
// Of a matrix that lies by rows, whatever its sizes.
int64_t leading_of_rows(const Matrix& m);

// C (m x n) = A (m x k) B (k x n), or C += A B. For BLAS types every matrix fits_blas, C by rows (col_stride 1); any
// strides for the others, whose sums are kept in float32 (half floats), or wrap (integers).
void gemm(bp_dtype dtype, const Matrix& a, const Matrix& b, const Matrix& c, bool accumulate = false);

bool is_blas_type(bp_dtype dtype);

}  // namespace backplane::cpu
