// The adjoint of (x - mean) / spread over a channel whose spread is so small or large that its powers leave the range
// of the type: in double, element by element.
#pragma once

#include "kernels/nn/batch_norm_loops.hpp"

namespace backplane::cpu {

// Can the loops of batch_norm_loops.hpp multiply by 1 / spread^3?
template <class C>
bool is_ordinary(double spread) {
  constexpr double kMost = sizeof(C) == sizeof(double) ? 1e100 : 1e10;
  return spread > 1 / kMost && spread < kMost;
}

template <class S>
class NormAdjoint {
 public:
  using C = plugin::Compute<S>;
  NormAdjoint(const ChannelRows<S>& rows, double mean, double spread) : rows_(rows), mean_(mean), spread_(spread) {
    each([&](int64_t i) {
      const double g = at(rows_.g, i);
      sums_.g += g;
      sums_.gx += g * distance(i);
    });
  }
  // Of g, and of g * (x - mean) / spread.
  const GradSums& sums() const { return sums_; }
  // out = weight * (g - mean(g) - n * mean(g * n)) / spread, where n = (x - mean) / spread.
  void store(double weight, S* out) const {
    const auto count = static_cast<double>(rows_.pieces * rows_.rest);
    each([&](int64_t i) {
      const double rest = at(rows_.g, i) - sums_.g / count - distance(i) * (sums_.gx / count);
      out[i] = static_cast<S>(static_cast<C>(weight * rest / spread_));
    });
  }

 private:
  template <class F>
  void each(F&& f) const {
    for (int64_t piece = 0; piece < rows_.pieces; ++piece)
      for (int64_t i = 0; i < rows_.rest; ++i) f(piece * rows_.step + i);
  }
  static double at(const S* x, int64_t i) { return static_cast<double>(static_cast<C>(x[i])); }
  double distance(int64_t i) const { return (at(rows_.x, i) - mean_) / spread_; }

  ChannelRows<S> rows_;
  double mean_, spread_;
  GradSums sums_{0, 0};
};

}  // namespace backplane::cpu
