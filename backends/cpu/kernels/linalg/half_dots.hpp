// Products of a matrix of half floats with a vector of them: dot products in float32, rounded once, without a widened
// copy of the matrix, which takes longer to make than the product. Pure; any thread.
#pragma once

#include "kernels/linalg/gemm.hpp"

namespace backplane::cpu {

// Computes c = a b and returns true if a or b is a vector and both are contiguous along the sums; else
// returns false.
bool half_dots(bp_dtype dtype, const Matrix& a, const Matrix& b, const Matrix& c);

}  // namespace backplane::cpu
