// index and index_put: advanced indexing by integer tensors, one per leading axis.
//
// The dimensions of the broadcast index tensors stand where the indexed axes stood if those are neighbours, and first
// otherwise (NumPy's rule). An index out of range is an error of the data.
#include "kernels/families.hpp"

namespace backplane::cuda {
namespace {

class Plan {
 public:
  Plan(const Call& call, const bp_tensor& x) : x_(x) {
    const bp_value& list = call.value(1);
    for (uint32_t k = 0; k < list.count; ++k) indices_.push_back(list.u.tensors[k]);
    for (const bp_tensor* index : indices_) {
      if (!index) continue;
      const auto rank = static_cast<size_t>(index->dl.ndim);
      if (rank > positions_.size()) positions_.insert(positions_.begin(), rank - positions_.size(), 1);
      for (size_t d = 0; d < rank; ++d)
        if (index->dl.shape[d] != 1) positions_[positions_.size() - rank + d] = index->dl.shape[d];
    }
    for (size_t axis = 0; axis < rank(); ++axis)
      if (!indexed(axis)) kept_.push_back(x.dl.shape[axis]);
  }

  // The shape of the picked elements.
  std::vector<int64_t> shape() const {
    std::vector<int64_t> made = kept_;
    made.insert(made.begin() + static_cast<ptrdiff_t>(axes_before()), positions_.begin(), positions_.end());
    return made;
  }

  // The kernels' argument; `strides` are those of the picked elements at shape().
  Indexing arguments(const Call& call, const std::vector<int64_t>& strides, char* picked) const {
    const auto split = strides.begin() + static_cast<ptrdiff_t>(axes_before());
    const auto end = split + static_cast<ptrdiff_t>(positions_.size());
    std::vector<int64_t> kept_strides(strides.begin(), split), x_strides;
    kept_strides.insert(kept_strides.end(), end, strides.end());
    const auto own = byte_strides_of(x_);
    for (size_t axis = 0; axis < rank(); ++axis)
      if (!indexed(axis)) x_strides.push_back(own[axis]);
    Indexing made{};
    made.kept = dimensions(kept_, kept_strides, x_strides);
    made.positions = dimensions(positions_, {split, end}, std::vector<int64_t>(positions_.size(), 0));
    made.x = data_of(x_);
    made.picked = picked;
    for (size_t axis = 0; axis < indices_.size(); ++axis)
      if (indexed(axis)) add_index(made, axis, own[axis]);
    made.error = call.expect_error();
    return made;
  }

 private:
  size_t rank() const { return static_cast<size_t>(x_.dl.ndim); }
  bool indexed(size_t axis) const { return axis < indices_.size() && indices_[axis]; }
  // How many axes of the indexed shape come before those of the index tensors.
  size_t axes_before() const {
    size_t first = 0, runs = 0;
    for (size_t axis = 0; axis < rank(); ++axis)
      if (indexed(axis) && (axis == 0 || !indexed(axis - 1)) && runs++ == 0) first = axis;
    return runs > 1 ? 0 : first;
  }
  void add_index(Indexing& made, size_t axis, int64_t stride) const {
    BP_CHECK(made.n_indices < kMaxRank, NOT_IMPLEMENTED, "cuda: found more than ", kMaxRank, " index tensors");
    const bp_tensor& tensor = *indices_[axis];
    Indexing::Index& index = made.indices[made.n_indices++];
    index = {data_of(tensor), x_.dl.shape[axis], stride, {}, tensor.dtype, static_cast<int32_t>(axis)};
    const auto spread = broadcast_strides(tensor, positions_);
    for (size_t d = positions_.size(), to = 0; d-- > 0;)  // the dimensions that dimensions() keeps
      if (positions_[d] != 1) index.strides[to++] = spread[d];
  }

  const bp_tensor& x_;
  std::vector<const bp_tensor*> indices_;
  std::vector<int64_t> positions_, kept_;
};

void index(const Call& call) {
  const bp_tensor& out = call.output();
  if (count_of(out) == 0) return;
  const Indexing made = Plan(call, call.input(0)).arguments(call, byte_strides_of(out), data_of(out));
  call.launch("moves", "index_" + std::to_string(item_of(out)),
              call.grid_for(uint64_t{made.kept.count} * made.positions.count), made);
}

void index_put(const Call& call) {
  const bp_tensor &x = call.input(0), &values = call.input(2), &out = call.output();
  const Plan plan(call, out);
  const auto shape = plan.shape();
  BP_CHECK(static_cast<size_t>(values.dl.ndim) <= shape.size(), SHAPE, call.op_name(), ": values have ", values.dl.ndim,
           " axes, the indexed positions ", shape.size());
  const int64_t width = item_of(out);
  char* picked = data_of(values);
  auto strides = broadcast_strides(values, shape);
  if (picked == data_of(out) && count_of(values) > 0) {  // in place, the values may be the very tensor that is written
    const auto own = shape_of(values);
    std::vector<int64_t> packed(own.size());
    int64_t step = width;
    for (size_t d = own.size(); d-- > 0; step *= own[d]) packed[d] = step;
    picked = call.scratch(values.nbytes);
    launch_copy(call, copy_operands(picked, packed, data_of(values), byte_strides_of(values), own), width);
    strides.assign(shape.size(), 0);
    for (size_t d = 0; d < own.size(); ++d)
      if (own[d] != 1) strides[shape.size() - own.size() + d] = packed[d];
  }
  if (data_of(x) != data_of(out))
    launch_copy(call, copy_operands(data_of(out), byte_strides_of(out), data_of(x), byte_strides_of(x), shape_of(x)),
                width);
  const Indexing made = plan.arguments(call, strides, picked);
  if (made.kept.count == 0 || made.positions.count == 0) return;
  const bool accumulate = call.has(3) && call.integer(3) != 0;
  call.launch(typed_module(out.dtype), accumulate ? "put_add" : "put", call.grid_for(made.kept.count), made);
}

}  // namespace

void register_indexing(const Registration& registration) {
  registration.row("index", kernel<index>, BP_MASK_ANY, BP_KERNEL_STRIDED, __FILE__, __LINE__);
  registration.row("index_put", kernel<index_put>, BP_MASK_ANY, BP_KERNEL_STRIDED | BP_KERNEL_INPLACE, __FILE__,
                   __LINE__);
}

}  // namespace backplane::cuda
