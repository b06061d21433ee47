// Convolution in float32 through oneDNN, where the build found that library.
#pragma once

#include "kernels/nn/convolution.hpp"

namespace backplane::cpu {

// conv2d (a is x, b is w), its adjoint in the images (a is y, b is w) or in the kernels (a is y, b is x); `out`, all of
// it. False, and nothing done, where oneDNN is absent, has no compiled kernel for the shape, or gains nothing.
bool dnn_conv2d(const bp_frame* frame, Pass pass, const Convolution& c, const float* a, const float* b, float* out);

#ifndef BACKPLANE_ONEDNN
inline bool dnn_conv2d(const bp_frame*, Pass, const Convolution&, const float*, const float*, float*) { return false; }
#endif

}  // namespace backplane::cpu
