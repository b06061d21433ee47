// Products of float32 through oneDNN, where the build found that library and the processor has AVX-512.
#pragma once

#include "kernels/linalg/gemm.hpp"

namespace backplane::cpu {

#ifdef BACKPLANE_ONEDNN
bool has_dnn_sgemm();
// C = A B or C += A B of matrices that fit_blas, C by rows, no size 0. Does nothing and returns false if OpenBLAS
// is not slower.
bool dnn_sgemm(const Matrix& a, const Matrix& b, const Matrix& c, bool accumulate);
#else
inline bool has_dnn_sgemm() { return false; }
inline bool dnn_sgemm(const Matrix&, const Matrix&, const Matrix&, bool) { return false; }
#endif

}  // namespace backplane::cpu
