// Tensors over the storage of another tensor, for bridges to frameworks whose tensors describe themselves by a storage,
// a dtype, sizes, strides and an offset. Functions throw Error. Any thread may call them.
#pragma once

#include "backplane/tensor.hpp"

namespace backplane {

// The size of the tensor's storage in bytes.
BACKPLANE_API uint64_t storage_bytes(const Tensor& tensor);
// A tensor over the storage of `base`, without a history. Strides are in elements and not negative; `byte_offset`
// counts from the storage's first byte and is a multiple of the item size. Throws if an element lies outside the
// storage.
BACKPLANE_API Tensor view_storage(const Tensor& base, bp_dtype dtype, Shape shape, Shape strides, uint64_t byte_offset);

}  // namespace backplane
