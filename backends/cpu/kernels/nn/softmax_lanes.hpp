// The loops of the softmax family, for float32 and float64: over one lane, or over a strip of lanes side by side.
//
// Tables are filled once and constant afterwards; the loops are pure.
#pragma once

#include <cstdint>

namespace backplane::cpu {

// The logarithm of a lane's sum of exponentials is shift + log; apart, a difference with it keeps its digits.
template <class T>
struct LogSum {
  T shift;
  double log;
};

// Of lanes of n >= 1 elements; `out` may be `x`. A lane is contiguous, with its sum returned; the elements of a strip's
// lanes are `stride` elements apart and the lanes side by side, with `sums` for the logarithms (of width elements). Of
// a strip `rows` rows stay in the cache: where it has more, its exponentials are computed twice instead of read again.
template <class T>
struct SoftmaxLoops {
  void (*softmax)(const T* x, T* out, int64_t n);
  void (*log_softmax)(const T* x, T* out, int64_t n);
  LogSum<T> (*log_sum_exp)(const T* x, int64_t n);
  void (*softmax_strip)(const T* x, T* out, int64_t n, int64_t rows, int64_t stride, int64_t width);
  void (*log_softmax_strip)(const T* x, T* out, int64_t n, int64_t rows, int64_t stride, int64_t width);
  void (*log_sum_exp_strip)(const T* x, T* sums, int64_t n, int64_t rows, int64_t stride, int64_t width);
};
inline constexpr int64_t kSoftmaxStrip = 256;  // lanes of a strip at most

template <class T>
const SoftmaxLoops<T>& softmax_loops();
extern template const SoftmaxLoops<float>& softmax_loops<float>();
extern template const SoftmaxLoops<double>& softmax_loops<double>();

}  // namespace backplane::cpu
