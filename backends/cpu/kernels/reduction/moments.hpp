// Mean and variance in one pass over the data, or more where the first is inaccurate.
//
// The first pass takes distances from a guess, the mean of the first elements. Where the guess lies further from the
// mean than the elements do, squares would lose digits, and a second pass takes distances from the mean itself.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/reduction/moment_loops.hpp"

namespace backplane::cpu {

// The variance is in units of scale², a power of two: of large or small doubles it would leave the range of double.
struct Moments {
  double mean, variance, scale = 1;

  double whole_variance() const { return variance * scale * scale; }
  double deviation() const { return scale * std::sqrt(variance); }
  // sqrt(variance + eps)
  double spread(double eps) const {
    return scale == 1 ? std::sqrt(variance + eps) : std::hypot(deviation(), std::sqrt(eps));
  }
};

inline constexpr int64_t kGuessElements = 64, kGuessRows = 16;

// Squares near the limits of the type are added again: those of float32 in double, those of double scaled.
template <class C>
bool in_range(double squares, double count) {
  if constexpr (sizeof(C) == sizeof(double)) return squares > 1e-280 * count && squares < 1e280 * count;
  return squares > 1e-30 * count && squares < 1e30 * count;
}

// exact(f): the sum in double of f(element) over all elements.
template <class C, class Exact>
Moments exact_moments(double count, Exact&& exact) {
  double scale = 1;
  if constexpr (sizeof(C) == sizeof(double)) {
    double low = INFINITY, high = -INFINITY;
    const double nans = exact([&](double v) {
      low = std::min(low, v), high = std::max(high, v);
      return v != v ? 1.0 : 0.0;
    });
    if (nans == 0 && low == high) return {low, std::isfinite(low) ? 0 : NAN};
    const double largest = std::max(std::abs(low), std::abs(high));
    if (largest > 0 && std::isfinite(largest)) scale = std::ldexp(1.0, std::ilogb(largest));
  }
  const double mean = exact([scale](double v) { return v / scale; }) / count;
  const double squares = exact([=](double v) { return (v / scale - mean) * (v / scale - mean); });
  return {mean * scale, squares / count, scale};
}

// pass(shift): the Distances of all elements. exact(f): see exact_moments.
template <class C, class Pass, class Exact>
Moments moments(C shift, double count, Pass&& pass, Exact&& exact) {
  for (bool last = false;; last = true) {
    const Distances d = pass(shift);
    const double rest = d.sum / count, variance = d.squares / count - rest * rest;
    const double mean = static_cast<double>(shift) + rest;
    if (!in_range<C>(d.squares, count)) break;
    // NaN and infinities are not corrected by another pass.
    if (last || !(rest * rest > variance)) return {mean, variance < 0 ? 0 : variance};
    shift = static_cast<C>(mean);
  }
  return exact_moments<C>(count, exact);
}

// n elements, `step` apart. Four chains: an addition takes as long as four that do not wait for each other.
template <class S, class F>
double exact_sum(const S* x, int64_t n, int64_t step, F&& f) {
  const auto at = [&](int64_t i) { return static_cast<double>(static_cast<plugin::Compute<S>>(x[i * step])); };
  double sums[4] = {};
  int64_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (int64_t j = 0; j < 4; ++j) sums[j] += f(at(i + j));
  for (; i < n; ++i) sums[0] += f(at(i));
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

template <class S>
plugin::Compute<S> guess_mean(const S* x, int64_t n) {
  const int64_t count = std::min(n, kGuessElements);
  const double mean = moment_loops<S>().distances(x, 0, count).sum / static_cast<double>(count);
  return static_cast<plugin::Compute<S>>(mean);
}

// n elements that are neighbours.
template <class S>
Moments row_moments(const S* x, int64_t n) {
  const MomentLoops<S>& loops = moment_loops<S>();
  return moments(
      guess_mean(x, n), static_cast<double>(n), [&](auto shift) { return loops.distances(x, shift, n); },
      [&](auto&& f) { return exact_sum(x, n, 1, f); });
}

// Lanes side by side: `width` of n elements, which are `stride` apart.
template <class S>
struct Strip {
  const S* x;
  int64_t n, stride, width;
};

// result(lane, Moments). pass(shifts, sums, squares) adds the distances of all lanes; by default in one piece.
template <class S, class Pass, class Result>
void strip_moments(const Strip<S>& strip, Pass&& pass, Result&& result) {
  using C = plugin::Compute<S>;
  C shifts[kMomentStrip] = {};
  double sums[kMomentStrip] = {}, squares[kMomentStrip] = {};
  const auto count = static_cast<double>(strip.n);
  const int64_t rows = std::min(strip.n, kGuessRows);
  moment_loops<S>().distances_strip(strip.x, shifts, rows, strip.stride, strip.width, sums, squares);
  for (int64_t j = 0; j < strip.width; ++j) shifts[j] = static_cast<C>(sums[j] / static_cast<double>(rows));
  bool again = false;
  const auto take = [&] {
    std::fill_n(sums, strip.width, 0.0);
    std::fill_n(squares, strip.width, 0.0);
    pass(shifts, sums, squares);
  };
  take();
  const auto rest = [&](int64_t j) { return sums[j] / count; };
  for (int64_t j = 0; j < strip.width; ++j) again |= 2 * rest(j) * rest(j) > squares[j] / count;
  if (again) {
    for (int64_t j = 0; j < strip.width; ++j) shifts[j] = static_cast<C>(static_cast<double>(shifts[j]) + rest(j));
    take();
  }
  for (int64_t j = 0; j < strip.width; ++j) {
    Moments m{static_cast<double>(shifts[j]) + rest(j), std::max(squares[j] / count - rest(j) * rest(j), 0.0)};
    if (!in_range<C>(squares[j], count))
      m = exact_moments<C>(count, [&](auto&& f) { return exact_sum(strip.x + j, strip.n, strip.stride, f); });
    result(j, m);
  }
}
template <class S, class Result>
void strip_moments(const Strip<S>& strip, Result&& result) {
  const auto whole = [&](const auto* shifts, double* sums, double* squares) {
    moment_loops<S>().distances_strip(strip.x, shifts, strip.n, strip.stride, strip.width, sums, squares);
  };
  strip_moments(strip, whole, result);
}

}  // namespace backplane::cpu
