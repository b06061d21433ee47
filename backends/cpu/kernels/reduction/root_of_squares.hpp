// The root of a sum of squares without overflow or underflow on the way: by the plain sum where that is in range, or by
// a second pass over the elements.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/reduction/moments.hpp"

namespace backplane::cpu {

// Is the sum of n squares, computed in C, right to the last digits?
template <class C>
bool squares_in_range(double squares, double n) {
  if constexpr (sizeof(C) < sizeof(double)) return in_range<C>(squares, n);
  return squares > 1e-290 * n && squares < std::numeric_limits<double>::infinity();
}

// squares: the plain sum over n elements, `step` apart. The squares of float32 never leave double; those of double are
// taken of quotients by the largest element.
template <class S>
double root_of_squares(double squares, const S* x, int64_t n, int64_t step) {
  using C = plugin::Compute<S>;
  if (squares_in_range<C>(squares, static_cast<double>(n))) return std::sqrt(squares);
  if constexpr (sizeof(C) < sizeof(double)) return std::sqrt(exact_sum(x, n, step, [](double v) { return v * v; }));
  double largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double size = std::abs(static_cast<double>(static_cast<C>(x[i * step])));
    if (!(size <= largest)) largest = size;
    if (size != size) return size;
  }
  if (largest == 0 || std::isinf(largest)) return largest;
  return largest * std::sqrt(exact_sum(x, n, step, [largest](double v) { return v / largest * (v / largest); }));
}

}  // namespace backplane::cpu
