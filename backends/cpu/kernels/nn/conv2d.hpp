// conv2d with what follows it, for the kernel and for compiled regions.
#pragma once

#include "kernels/nn/conv_tail.hpp"
#include "kernels/nn/convolution.hpp"

namespace backplane::cpu {

// From the shapes of images, kernels and results; `options`: stride, padding, dilation, groups.
Convolution convolution_of(const int64_t* x, const int64_t* w, const int64_t* y, const bp_value* options);

// y = conv2d(x, w) and its tail, in float32; tensors are contiguous, and have elements.
void conv2d_with_tail(const bp_frame* frame, const Convolution& c, const float* x, const float* w, float* y,
                      const ConvTail& tail);

}  // namespace backplane::cpu
