// Convolution with one channel per group, in float32, on images as they lie.
#pragma once

#include "kernels/nn/conv_tail.hpp"
#include "kernels/nn/convolution.hpp"

namespace backplane::cpu {

// conv2d and its tail. False, and nothing done, where groups have several channels, or other ways are faster.
bool depthwise_conv2d(const bp_frame* frame, const Convolution& c, const float* x, const float* w, float* y,
                      const ConvTail& tail);

}  // namespace backplane::cpu
