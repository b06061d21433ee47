// Direct convolution in float32, without a matrix of windows.
//
// Images are copied once into padded planes, one per remainder of the position modulo the stride; then what a tap reads
// for neighbouring outputs lies side by side, and the convolution is a shifted_product over pixels.
#pragma once

#include "kernels/nn/convolution.hpp"

namespace backplane::cpu {

// y, all of it.
void direct_forward(const bp_frame* frame, const Convolution& c, const float* x, const float* w, float* y);

}  // namespace backplane::cpu
