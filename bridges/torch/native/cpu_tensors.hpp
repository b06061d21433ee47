// Tensors of PyTorch's CPU as tensors of Backplane's, and back, over the same memory. Any thread may call these
// functions. They throw backplane::Error and c10::Error.
#pragma once

#include <ATen/core/Tensor.h>

#include "backplane/tensor.hpp"

namespace backplane_torch {

// A tensor of Backplane over the elements of x, a strided tensor of PyTorch's CPU. It holds x's memory while it lives.
backplane::Tensor borrowed(const at::Tensor& x);

// A tensor of PyTorch over a result on Backplane's CPU. Row-major; others are copied.
at::Tensor cpu_tensor_over(backplane::Tensor result);

}  // namespace backplane_torch
