// What follows a convolution in one pass over its results: steps that are affine per channel, then bounds. A way of
// computing convolutions applies it before it stores.
#pragma once

#include <cstdint>
#include <limits>

#include "backplane/plugin.hpp"

namespace backplane::cpu {

inline constexpr int kMostTailSteps = 6;

// y = y * scale[channel] + shift[channel], rounded once. Multiplying by 1 and adding -0 keep every number as it is.
struct AffineStep {
  const float *scale, *shift;
};

struct ConvTail {
  AffineStep steps[kMostTailSteps];
  int n_steps = 0;
  // Never NaN: a result that is NaN keeps it. Results up to `low_from`, which is the bound or the number below it,
  // become the bound: at a tie its zero may have another sign. So do results from `high_from` on.
  float low = -std::numeric_limits<float>::infinity(), high = std::numeric_limits<float>::infinity();
  float low_from = low, high_from = high;

  bool bounded_below() const { return low > -std::numeric_limits<float>::infinity(); }
  bool bounded_above() const { return high < std::numeric_limits<float>::infinity(); }
  bool empty() const { return n_steps == 0 && !bounded_below() && !bounded_above(); }
};

// For ways that do not: y (images, channels, pixels) = tail(y).
void apply_tail(const bp_frame* frame, const ConvTail& tail, int64_t images, int64_t channels, int64_t pixels,
                float* y);

}  // namespace backplane::cpu
