// The places of the largest or smallest elements of lanes that lie side by side. Pure.
#pragma once

#include <cstdint>

namespace backplane::cpu {

inline constexpr int64_t kArgColumns = 256;   // lanes at a time
inline constexpr int64_t kArgRows = 1 << 30;  // elements of a lane

// places[j] for j < width <= kArgColumns: where x[i * stride + j] is largest (or smallest) over i < n, the first of
// equals, the first NaN where there is one.
void arg_columns(bool largest, const float* x, int64_t n, int64_t stride, int64_t width, int64_t* places);
void arg_columns(bool largest, const double* x, int64_t n, int64_t stride, int64_t width, int64_t* places);

}  // namespace backplane::cpu
