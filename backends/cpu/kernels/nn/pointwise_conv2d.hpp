// Convolution with kernels of one pixel, in float32: a product of the kernels with the image as it lies.
#pragma once

#include "kernels/nn/conv_tail.hpp"
#include "kernels/nn/convolution.hpp"

namespace backplane::cpu {

// conv2d and its tail. False, and nothing done, where `c` is not pointwise, or other ways are faster.
bool pointwise_conv2d(const bp_frame* frame, const Convolution& c, const float* x, const float* w, float* y,
                      const ConvTail& tail);

}  // namespace backplane::cpu
