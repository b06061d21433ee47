// Bands of a convolution's outputs, so that a matrix of windows needs little memory however large the image.
#pragma once

#include <algorithm>

#include "kernels/nn/windows.hpp"

namespace backplane::cpu {

constexpr int64_t kBandBytes = int64_t{64} << 20;

// Whole rows of outputs, or a part of one row, as windows of their own over the same image.
struct Band {
  Windows windows;
  int64_t first;  // its first output
};

// Outputs of the largest band, where a column of the matrix of windows has `column_bytes`.
inline int64_t outputs_of_band(const Windows& w, int64_t column_bytes) {
  const int64_t most = std::max<int64_t>(kBandBytes / std::max<int64_t>(column_bytes, 1), 1);
  if (w.outputs() <= most) return w.outputs();
  return most >= w.out_width ? most / w.out_width * w.out_width : most;
}

// run(band) for all bands, in order. A convolution with less padding begins further inside.
template <class Run>
void for_each_band(const Windows& w, int64_t column_bytes, Run&& run) {
  const int64_t most = outputs_of_band(w, column_bytes), rows = std::max<int64_t>(most / w.out_width, 1);
  const int64_t columns = std::min(most, w.out_width);
  for (int64_t y = 0; y < w.out_height; y += rows)
    for (int64_t x = 0; x < w.out_width; x += columns) {
      Band band{w, y * w.out_width + x};
      band.windows.out_height = std::min(rows, w.out_height - y);
      band.windows.out_width = std::min(columns, w.out_width - x);
      band.windows.padding[0] -= y * w.stride[0];
      band.windows.padding[1] -= x * w.stride[1];
      run(band);
    }
}

}  // namespace backplane::cpu
