// Tensors whose elements the host writes.
#pragma once

#include <functional>

#include "backplane/tensor.hpp"

namespace backplane::core {

// A contiguous tensor. `fill` writes all of its bytes: on a device without host memory, into a buffer that is copied
// there. A bool of any byte but 0 becomes 1. Errors name `who`.
Tensor filled(const char* who, Shape shape, bp_dtype dtype, bp_device device, const std::function<void(char*)>& fill);

}  // namespace backplane::core
