// Products of bfloat16 through oneDNN, where the build found that library and the processor has their instruction.
#pragma once

#include "kernels/linalg/gemm.hpp"

namespace backplane::cpu {

#ifdef BACKPLANE_ONEDNN
// Whether dnn_matmul may take anything at all.
bool dnn_has_bfloat16();
// C = A B of matrices that fit_blas, C by rows; sums are kept in float32 and rounded once. False, and nothing done,
// where the product is small or its shape new, or oneDNN has no compiled kernel.
bool dnn_matmul(const Matrix& a, const Matrix& b, const Matrix& c);
#else
inline bool dnn_has_bfloat16() { return false; }
inline bool dnn_matmul(const Matrix&, const Matrix&, const Matrix&) { return false; }
#endif

}  // namespace backplane::cpu
