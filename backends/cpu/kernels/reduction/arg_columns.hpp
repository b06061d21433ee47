// The places of the largest or smallest elements: of lanes that lie side by side, and of a value in a row.
//
// S is the type in memory; half floats are compared in float32. Tables are filled once and constant afterwards; the
// loops are pure.
#pragma once

#include <cstdint>

#include "backplane/plugin.hpp"

namespace backplane::cpu {

inline constexpr int64_t kArgColumns = 256;   // lanes at a time
inline constexpr int64_t kArgRows = 1 << 30;  // elements of a lane

template <class S>
struct ArgLoops {
  // places[j] for j < width <= kArgColumns: where x[i * stride + j] is largest (or smallest) over i < n, the first of
  // equals, the first NaN where there is one.
  void (*columns)(bool largest, const S* x, int64_t n, int64_t stride, int64_t width, int64_t* places);
  // The first of n neighbours that is `value`, or a NaN; there must be one.
  int64_t (*place)(const S* x, int64_t n, plugin::Compute<S> value);
};

// For float16, bfloat16, float and double.
template <class S>
const ArgLoops<S>& arg_loops();
extern template const ArgLoops<plugin::float16>& arg_loops<plugin::float16>();
extern template const ArgLoops<plugin::bfloat16>& arg_loops<plugin::bfloat16>();
extern template const ArgLoops<float>& arg_loops<float>();
extern template const ArgLoops<double>& arg_loops<double>();

}  // namespace backplane::cpu
