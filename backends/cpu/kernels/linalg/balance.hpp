// Diagonal scaling of a square matrix by powers of two: B = D^-1 A D with off-diagonal elements as small as it gets.
//
// exp(A) = D exp(B) D^-1, and products of matrices round alike before and after, so a method that chooses its steps by
// the norm of B instead of A loses no digits, and saves those that the steps for large couplings would cost.
#pragma once

#include <cstdint>
#include <vector>

namespace backplane::cpu {

// The exponents e of D = diag(2^e) for the magnitudes of an n x n matrix by rows, whose diagonal is not read. The
// exponents lie at most kMostSpread apart. Strongly connected components of the graph of elements are balanced by
// Osborne's iteration (1960); couplings between components, which only grow in one direction, shrink below 1 / n.
std::vector<int> balancing_exponents(const double* magnitudes, int64_t n);
inline constexpr int kMostSpread = 900;

}  // namespace backplane::cpu
