// What a tensor of a trace was detached from.
#pragma once

#include "backplane/tensor.hpp"

namespace backplane {

// The tensor from which this one was detached, if it is the result of detach, data or stop_gradient inside a trace, or
// a view of such a result: eagerly both share memory. Else the tensor itself. Throws Error.
BACKPLANE_API Tensor attached(const Tensor& tensor);

}  // namespace backplane
