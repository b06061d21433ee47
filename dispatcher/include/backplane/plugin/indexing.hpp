// Advanced indexing by integer tensors, one per leading axis, an absent one keeping its axis: where the dimensions go,
// and a walk over the positions.
//
// The dimensions of the broadcast index tensors stand where the indexed axes stood if those are neighbours, and first
// otherwise (NumPy's rule). IndexPlan reads shapes alone, so it serves devices of any memory; for_each_indexed reads
// the index tensors, and is for memory that this code can address. Not the contract: header-only sugar over it.
#pragma once

#include "backplane/plugin/context.hpp"
#include "backplane/plugin/walk.hpp"

namespace backplane::plugin {

// Of a tensor with the shape `x`. Borrows both arguments.
class IndexPlan {
 public:
  IndexPlan(Ints x, std::span<bp_tensor* const> indices) : x_(x), indices_(indices) {
    for (const bp_tensor* index : indices) {
      if (index == nullptr) continue;
      const Ints shape(index->dl.shape, static_cast<size_t>(index->dl.ndim));
      if (shape.size() > positions_.size()) positions_.insert(positions_.begin(), shape.size() - positions_.size(), 1);
      for (size_t d = 0; d < shape.size(); ++d)
        if (shape[d] != 1) positions_[positions_.size() - shape.size() + d] = shape[d];
    }
    size_t runs = 0;
    for (size_t axis = 0; axis < x.size(); ++axis)
      if (indexed(axis) && (axis == 0 || !indexed(axis - 1)) && runs++ == 0) before_ = axis;
    if (runs > 1) before_ = 0;
  }

  bool indexed(size_t axis) const { return axis < indices_.size() && indices_[axis] != nullptr; }
  // The shape of the index tensors, broadcast.
  Ints positions() const { return positions_; }
  // How many axes of the indexed shape come before those of the positions.
  size_t axes_before() const { return before_; }
  // The shape of what the indices pick: positions among the axes that are kept.
  std::vector<int64_t> picked_shape() const {
    std::vector<int64_t> shape;
    for (size_t axis = 0; axis < x_.size(); ++axis)
      if (!indexed(axis)) shape.push_back(x_[axis]);
    shape.insert(shape.begin() + static_cast<ptrdiff_t>(before_), positions_.begin(), positions_.end());
    return shape;
  }

 private:
  Ints x_;
  std::span<bp_tensor* const> indices_;
  std::vector<int64_t> positions_;
  size_t before_ = 0;
};

namespace detail {
// Adds to each position the element offset that one axis' index asks for.
inline void add_offsets(Context call, const IndexPlan& plan, size_t axis, const bp_tensor& index, int64_t size,
                        int64_t stride, std::vector<int64_t>& offsets) {
  const auto rank = static_cast<size_t>(index.dl.ndim);
  const auto strides = broadcast_strides({index.dl.shape, rank}, {index.dl.strides, rank}, plan.positions().size());
  const char* data = static_cast<const char*>(index.dl.data) + index.dl.byte_offset;
  dispatch_dtype<BP_MASK_INTEGER>(index.dtype, [&]<class I>() {
    size_t position = 0;
    walk<1>(plan.positions(), {Ints(strides)}, [&](const auto& at) {
      const I value = reinterpret_cast<const I*>(data)[at[0]];
      const auto found =
          static_cast<int64_t>(value);  // negative of a uint64 beyond every axis, which counts no axis back
      BP_CHECK(found >= (std::is_signed_v<I> ? -size : 0) && found < size, DATA, call.op_name(), ": found index ",
               +value, " along axis ", axis, ", expected one in [", -size, ", ", size, ")");
      offsets[position++] += (found < 0 ? found + size : found) * stride;
    });
  });
}
}  // namespace detail

// body(offset in x, offset in picked), in elements, for every element of the indexed shape, in row-major order of the
// positions. `picked` broadcasts to that shape. Throws Error(BP_ERROR_DATA) for an index out of range.
template <class Body>
void for_each_indexed(Context call, ConstTensor<void> x, std::span<bp_tensor* const> indices, ConstTensor<void> picked,
                      Body&& body) {
  const IndexPlan plan(x.shape(), indices);
  std::vector<int64_t> offsets(static_cast<size_t>(count_of(plan.positions())), 0);
  std::vector<int64_t> kept, x_strides;
  for (size_t axis = 0; axis < x.shape().size(); ++axis) {
    if (plan.indexed(axis)) {
      detail::add_offsets(call, plan, axis, *indices[axis], x.shape()[axis], x.strides()[axis], offsets);
    } else {
      kept.push_back(x.shape()[axis]);
      x_strides.push_back(x.strides()[axis]);
    }
  }
  const size_t rank = plan.positions().size();
  const auto strides = broadcast_strides(picked.shape(), picked.strides(), kept.size() + rank);
  const auto split = strides.begin() + static_cast<ptrdiff_t>(plan.axes_before());
  const std::vector<int64_t> position_strides(split, split + static_cast<ptrdiff_t>(rank));
  std::vector<int64_t> kept_strides(strides.begin(), split);
  kept_strides.insert(kept_strides.end(), split + static_cast<ptrdiff_t>(rank), strides.end());
  size_t position = 0;
  walk<1>(plan.positions(), {Ints(position_strides)}, [&](const auto& place) {
    const int64_t offset = offsets[position++];
    walk<2>(kept, {Ints(x_strides), Ints(kept_strides)},
            [&](const auto& at) { body(offset + at[0], place[0] + at[1]); });
  });
}

}  // namespace backplane::plugin
