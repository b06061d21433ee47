// Whether a tensor of given sizes and strides lies inside a storage.
#pragma once

#include "backplane/storage_view.hpp"

namespace backplane::core {

// Throws Error, with the name of the function, for a view that view_storage refuses of a storage of `bytes` bytes.
void check_view(const char* function, bp_dtype dtype, Shape shape, Shape strides, uint64_t byte_offset, uint64_t bytes);

}  // namespace backplane::core
