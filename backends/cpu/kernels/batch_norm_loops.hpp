// The two passes of batch_norm's gradient over one channel: sums, then the result.
#pragma once

#include <cstdint>

namespace backplane::cpu {

// `pieces` rows of `rest` neighbours, `step` elements apart, in the cotangent and in x.
template <class T>
struct ChannelRows {
  const T *g, *x;
  int64_t pieces, rest, step;
};

struct GradSums {
  double g, gx;  // of g and of g * (x - mean)
};

// For T = float and double. Any thread may call.
template <class T>
struct BatchNormLoops {
  GradSums (*sums)(const ChannelRows<T>& rows, T mean);
  // out = a * g + b * (x - mean) + c; `out` lies like g.
  void (*combine)(const ChannelRows<T>& rows, T mean, T a, T b, T c, T* out);
};
template <class T>
const BatchNormLoops<T>& batch_norm_loops();

}  // namespace backplane::cpu
