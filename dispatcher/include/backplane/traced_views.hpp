// What a function that is being traced has of tensors that were there before it.
#pragma once

#include "backplane/tensor.hpp"

namespace backplane {

// Is the tensor an argument of the function that a TraceScope of this thread traces, a tensor from outside, or a view
// of one of these (for ops such as reshape: may it be)? Tensors of no trace are from outside. Nothing is read.
BACKPLANE_API bool may_share_outside_memory(const Tensor& tensor);

}  // namespace backplane
