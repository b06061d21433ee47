// Direct convolution in float32, without a matrix of windows.
//
// Images are copied once into padded planes, one per remainder of the position modulo the stride; then what a tap reads
// for neighbouring outputs lies side by side, and the convolution is a shifted_product over pixels.
#pragma once

#include "kernels/windows.hpp"

namespace backplane::cpu {

// x (n, groups * channels, h, w), w (groups * filters, channels, kh, kw), y (n, groups * filters, oh, ow).
struct Convolution {
  Windows windows;
  int64_t images, groups, channels, filters;

  int64_t taps() const { return channels * windows.taps(); }
  int64_t image_size() const { return channels * windows.image(); }
  int64_t result_size() const { return filters * windows.outputs(); }
  int64_t kernel_size() const { return filters * taps(); }
  int64_t work() const { return filters * taps() * windows.outputs() > 0 ? filters * taps() * windows.outputs() : 1; }
  // Then the windows of an image are the image.
  bool pointwise() const {
    return windows.taps() == 1 && windows.stride[0] == 1 && windows.stride[1] == 1 && windows.padding[0] == 0 &&
           windows.padding[1] == 0;
  }
};

// y, all of it.
void direct_forward(const bp_frame* frame, const Convolution& c, const float* x, const float* w, float* y);

}  // namespace backplane::cpu
