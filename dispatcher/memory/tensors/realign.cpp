#include "memory/tensors/realign.hpp"

#include "memory/copy.hpp"
#include "memory/storage.hpp"
#include "record/dtype_rules.hpp"

namespace backplane::core {
namespace {

// Bytes from the lowest element to the first one, and from the lowest to the end of the highest.
struct Extent {
  uint64_t before = 0;
  uint64_t size = 0;
};

Extent extent_of(const TensorImpl& tensor) {
  if (element_count(tensor) == 0) return {};
  const uint64_t item = kItemSize[tensor.dtype];
  Extent extent{0, item};
  for (int32_t i = 0; i < tensor.dl.ndim; ++i) {
    const int64_t reach = (tensor.dl.shape[i] - 1) * tensor.dl.strides[i];
    const uint64_t bytes = static_cast<uint64_t>(reach < 0 ? -reach : reach) * item;
    if (reach < 0) extent.before += bytes;
    extent.size += bytes;
  }
  return extent;
}

}  // namespace

TensorImpl* realigned(const TensorImpl& tensor, Device& device, uint64_t alignment) {
  const Extent extent = extent_of(tensor);
  const uint64_t padding = (alignment - extent.before % alignment) % alignment;
  bp_storage* storage = new_storage(device, padding + extent.size);
  TensorImpl* moved;
  try {
    copy_within(device, storage, padding, tensor.storage, tensor.dl.byte_offset - extent.before, extent.size);
    moved = new_tensor_over(storage, tensor.dtype, tensor.dl.ndim, tensor.dl.shape, tensor.dl.strides,
                            padding + extent.before);
  } catch (...) {
    release(storage);
    throw;
  }
  return moved;
}

void restore_span(const TensorImpl& moved, const TensorImpl& to, Device& device) {
  const Extent extent = extent_of(to);
  copy_within(device, to.storage, to.dl.byte_offset - extent.before, moved.storage,
              moved.dl.byte_offset - extent.before, extent.size);
}

}  // namespace backplane::core
