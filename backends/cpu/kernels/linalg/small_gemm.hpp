// One product of small matrices of float32 or float64, or of few rows with a large matrix: operands are multiplied
// where they lie, in blocks of registers. OpenBLAS's call, checks and packing cost more than such a product. Pure; any
// thread.
#pragma once

#include "kernels/linalg/gemm.hpp"

namespace backplane::cpu {

// C (m x n) = A (m x k) B (k x n); strides in elements, those of C's columns 1.
template <class T>
struct SmallProduct {
  const T *a, *b;
  T* c;
  int64_t m, n, k;
  int64_t a_row, a_col, b_row, b_col, c_row;
};

// Computes c = a b and returns true where that is measured to be faster than OpenBLAS; else returns false.
bool small_gemm(bp_dtype dtype, const Matrix& a, const Matrix& b, const Matrix& c);

}  // namespace backplane::cpu
