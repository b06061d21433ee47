// The geometry of a convolution over images, for the ways of computing it.
#pragma once

#include "kernels/nn/windows.hpp"

namespace backplane::cpu {

// conv2d itself, its adjoint in the images, its adjoint in the kernels.
enum class Pass { kForward, kInput, kWeight };

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

}  // namespace backplane::cpu
