// The two passes of batch_norm's gradient over one channel: sums, then the result.
#pragma once

#include <cstdint>

#include "backplane/plugin.hpp"

namespace backplane::cpu {

// `pieces` rows of `rest` neighbours, `step` elements apart, in the cotangent and in x. S is the type in memory.
template <class S>
struct ChannelRows {
  const S *g, *x;
  int64_t pieces, rest, step;
};

struct GradSums {
  double g, gx;  // of g and of g * (x - mean)
};

// Any thread may call.
template <class S>
struct BatchNormLoops {
  using C = plugin::Compute<S>;
  GradSums (*sums)(const ChannelRows<S>& rows, C mean);
  // out = a * g + b * (x - mean) + c; `out` lies like g.
  void (*combine)(const ChannelRows<S>& rows, C mean, C a, C b, C c, S* out);
};
// For float16, bfloat16, float and double.
template <class S>
const BatchNormLoops<S>& batch_norm_loops();
extern template const BatchNormLoops<plugin::float16>& batch_norm_loops<plugin::float16>();
extern template const BatchNormLoops<plugin::bfloat16>& batch_norm_loops<plugin::bfloat16>();
extern template const BatchNormLoops<float>& batch_norm_loops<float>();
extern template const BatchNormLoops<double>& batch_norm_loops<double>();

}  // namespace backplane::cpu
