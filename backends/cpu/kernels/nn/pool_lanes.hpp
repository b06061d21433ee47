// Pooling of one float32 plane, neighbouring windows of a row in the lanes of vectors.
#pragma once

#include "kernels/nn/windows.hpp"

namespace backplane::cpu {

// Where this holds, the functions below may be called: positions in the plane and its rows fit 32 bits.
inline bool pools_in_lanes(const Windows& w) {
  return w.image() < (int64_t{1} << 31) && w.height > 0 && w.width > 0 && w.stride[1] < (int64_t{1} << 16);
}

// The first of equals, the first NaN where there is one; a window wholly in the padding is -inf, at its corner clamped
// into the image. `values` and `indices` may be NULL. Any thread may call.
void max_pool_lanes(const Windows& w, const float* image, float* values, int64_t* indices);
// Sums of windows, times `scale`.
void sum_pool_lanes(const Windows& w, const float* image, float scale, float* out);

}  // namespace backplane::cpu
