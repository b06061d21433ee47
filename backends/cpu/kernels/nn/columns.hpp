// Images as matrices of windows (im2col) and back: one row per channel and tap, one column per output position.
#pragma once

#include "kernels/nn/windows.hpp"

namespace backplane::cpu {

// columns[(channel, tap), output] = the pixel under that tap, or 0 outside the image.
template <class T>
void image_to_columns(const Windows& w, int64_t channels, const T* image, T* columns);

// The adjoint: adds each entry to its pixel.
template <class T>
void columns_to_image(const Windows& w, int64_t channels, const T* columns, T* image);

extern template void image_to_columns(const Windows&, int64_t, const float*, float*);
extern template void image_to_columns(const Windows&, int64_t, const double*, double*);
extern template void columns_to_image(const Windows&, int64_t, const float*, float*);
extern template void columns_to_image(const Windows&, int64_t, const double*, double*);

}  // namespace backplane::cpu
