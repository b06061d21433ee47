#include "memory/tensors/expand.hpp"

#include <span>

namespace backplane::core {

TensorImpl* expanded(const OpRecord& op, const TensorImpl& t, const ShapeResult& shape) {
  const std::span<const int64_t> from(t.dl.shape, static_cast<size_t>(t.dl.ndim));
  BP_CHECK(broadcasts_to(from, {shape.sizes, static_cast<size_t>(shape.ndim)}), SHAPE, op.name,
           ": an operand does not broadcast to the shape that the op's own rule gives its result");
  int64_t strides[kMaxRank];
  const int32_t added = shape.ndim - t.dl.ndim;
  for (int32_t d = 0; d < shape.ndim; ++d)
    strides[d] = d < added || t.dl.shape[d - added] != shape.sizes[d] ? 0 : t.dl.strides[d - added];
  TensorImpl* view = new_tensor_over(t.storage, t.dtype, shape.ndim, shape.sizes, strides, t.dl.byte_offset);
  retain(t.storage);
  return view;
}

}  // namespace backplane::core
