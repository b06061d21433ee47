// See columns.hpp. Rows of a window that lie in the image are copied whole where the stride is 1.
#include "kernels/nn/columns.hpp"

#include <algorithm>

namespace backplane::cpu {
namespace {

// segment(offset of the first pixel, output row, first column, count) for the part of each output row whose tap is
// inside.
template <class Rows, class Segment>
void for_each_tap_row(const Windows& w, int64_t ky, int64_t kx, Rows&& outside, Segment&& segment) {
  const Inside rows = inside(ky, w.stride[0], w.padding[0], w.dilation[0], w.height, w.out_height);
  const Inside columns = inside(kx, w.stride[1], w.padding[1], w.dilation[1], w.width, w.out_width);
  outside(rows, columns);
  if (columns.begin == columns.end) return;  // the first pixel of nothing may lie beyond 64 bits
  for (int64_t oy = rows.begin; oy < rows.end; ++oy) {
    const int64_t y = oy * w.stride[0] + ky * w.dilation[0] - w.padding[0];
    const int64_t x = columns.begin * w.stride[1] + kx * w.dilation[1] - w.padding[1];
    segment(y * w.width + x, oy, columns.begin, columns.end - columns.begin);
  }
}

}  // namespace

template <class T>
void image_to_columns(const Windows& w, int64_t channels, const T* image, T* columns) {
  for (int64_t c = 0; c < channels; ++c, image += w.image())
    for (int64_t ky = 0; ky < w.kernel[0]; ++ky)
      for (int64_t kx = 0; kx < w.kernel[1]; ++kx, columns += w.outputs()) {
        const auto clear = [&](Inside rows, Inside cols) {
          const bool all = rows.end - rows.begin == w.out_height && cols.end - cols.begin == w.out_width;
          if (!all) std::fill_n(columns, w.outputs(), T(0));
        };
        for_each_tap_row(w, ky, kx, clear, [&](int64_t pixel, int64_t oy, int64_t first, int64_t n) {
          T* out = columns + oy * w.out_width + first;
          if (w.stride[1] == 1)
            std::copy_n(image + pixel, n, out);
          else
            for (int64_t i = 0; i < n; ++i) out[i] = image[pixel + i * w.stride[1]];
        });
      }
}

template <class T>
void columns_to_image(const Windows& w, int64_t channels, const T* columns, T* image) {
  for (int64_t c = 0; c < channels; ++c, image += w.image())
    for (int64_t ky = 0; ky < w.kernel[0]; ++ky)
      for (int64_t kx = 0; kx < w.kernel[1]; ++kx, columns += w.outputs())
        for_each_tap_row(
            w, ky, kx, [](Inside, Inside) {},
            [&](int64_t pixel, int64_t oy, int64_t first, int64_t n) {
              const T* from = columns + oy * w.out_width + first;
              for (int64_t i = 0; i < n; ++i) image[pixel + i * w.stride[1]] += from[i];
            });
}

template void image_to_columns(const Windows&, int64_t, const float*, float*);
template void image_to_columns(const Windows&, int64_t, const double*, double*);
template void columns_to_image(const Windows&, int64_t, const float*, float*);
template void columns_to_image(const Windows&, int64_t, const double*, double*);

}  // namespace backplane::cpu
