// The loops of attention over one row of a block of scores, for float32 and float64.
//
// Tables are filled once and constant afterwards; the loops are pure.
#pragma once

#include <cstdint>

namespace backplane::cpu {

// The state of a row over the keys so far: the largest score, and the sum of exp(score - largest).
template <class T>
struct RowState {
  T largest, sum;
};

// A row of n raw products; a score is scale * product, plus its bias where there is one (-inf: not attended to).
template <class T>
struct AttentionLoops {
  // Products become exp(score - largest so far); returns the factor that scales the earlier sums.
  T (*absorb)(T* row, int64_t n, T scale, const T* bias, RowState<T>& state);
  // Products become exp(score - logarithm of the sum over all keys).
  void (*recall)(T* row, int64_t n, T scale, const T* bias, T log_sum);
  // slopes = weights * (slopes - delta) * scale: from the derivative in the weights to that in the products.
  void (*slope)(const T* weights, T* slopes, int64_t n, T delta, T scale);
  void (*multiply)(T* row, int64_t n, T factor);
};

template <class T>
const AttentionLoops<T>& attention_loops();
extern template const AttentionLoops<float>& attention_loops<float>();
extern template const AttentionLoops<double>& attention_loops<double>();

}  // namespace backplane::cpu
