// Views that begin where a backend's kernels cannot: moved as bytes to where they can, so that no kernel is needed.
//
// Devices state the alignment of byte offsets, rows may ask for more. Any thread may call; throws Error.
#pragma once

#include "memory/devices/device.hpp"
#include "memory/tensors/tensor_impl.hpp"

namespace backplane::core {

// A copy of the bytes that `tensor` spans, seen with its shape and strides from an aligned first element. The caller
// owns the result.
TensorImpl* realigned(const TensorImpl& tensor, Device& device, uint64_t alignment);

// Moves the span of `moved`, which realigned(to) made, back to where it came from.
void restore_span(const TensorImpl& moved, const TensorImpl& to, Device& device);

}  // namespace backplane::core
