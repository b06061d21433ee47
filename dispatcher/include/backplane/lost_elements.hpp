// Tensors whose elements are gone. No function throws.
#pragma once

#include "backplane/tensor.hpp"

namespace backplane {

// Are the elements known to be lost? They are if the tensor's device was reset after the tensor was made, or if the
// work that wrote them has failed. Does not wait for work whose outcome is not known yet.
BACKPLANE_API bool has_lost_elements(const Tensor& tensor);

}  // namespace backplane
