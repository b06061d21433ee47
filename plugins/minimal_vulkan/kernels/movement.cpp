// Kernels that move elements, by their width only.
#include "kernels/kernels.hpp"
#include "kernels/launch.hpp"

namespace minimal {
namespace {

void copy(Context call, ConstTensor<void> x, MutTensor<void> out) {
  Launch(call, Kernel::move, out.dtype())
      .tensor(*out.handle())
      .tensor(*x.handle())
      .run(Walk(call, {out.handle(), x.handle()}));
}

void concat(Context call, std::span<bp_tensor* const> arrays, int64_t axis, MutTensor<void> out) {
  const auto along = static_cast<int32_t>(axis);
  int64_t bytes = 0;
  for (bp_tensor* array : arrays) {
    const ConstTensor<void> piece(array);
    record_move(call, *out.handle(), bytes, *array, piece.shape(), out.strides(), piece.strides());
    bytes += piece.shape(along) * out.stride(along) * int64_t{kItemSize[out.dtype()]};
  }
}

// Per axis, start, count and step have arrived, and the shape rule has seen that the value broadcasts.
void slice_put(Context call, ConstTensor<void> x, ConstTensor<void> value, Ints axes, Ints starts, Ints counts,
               Ints steps, MutTensor<void> out) {
  std::vector<int64_t> shape(out.shape().begin(), out.shape().end());
  std::vector<int64_t> strides(out.strides().begin(), out.strides().end());
  int64_t first = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(axes[i]);
    first += starts[i] * strides[axis];
    shape[axis] = counts[i];
    strides[axis] *= steps[i];
  }
  record_move(call, *out.handle(), 0, *x.handle(), out.shape(), out.strides(), x.strides());
  record_move(call, *out.handle(), first * int64_t{kItemSize[out.dtype()]}, *value.handle(), shape, strides,
              broadcast_strides(value.shape(), value.strides(), shape.size()));
}

Walk walk_of(const IndexPlan::Part& part) {
  Walk walk;
  walk.sizes = part.sizes;
  walk.strides = {part.selected, part.indexed};
  return walk;
}

// Where the indices point: for each of the joint positions its byte offset in the indexed tensor, in scratch memory.
void* record_positions(Context call, const IndexPlan& plan) {
  void* offsets = call.scratch(static_cast<uint64_t>(plan.joint.count()) * sizeof(int64_t));
  Launch(call, Kernel::fill, BP_INT64).memory(offsets).run(plan.joint.count());
  const std::vector<int64_t> of_offsets = row_major(plan.joint.sizes, sizeof(int64_t));
  for (const IndexPlan::Index& index : plan.indices) {
    Walk walk;
    walk.sizes = plan.joint.sizes;
    walk.strides = {of_offsets, index.strides};
    Launch(call, Kernel::add_positions, index.dtype)
        .memory(offsets)
        .tensor(*index.tensor)
        .number(index.size)
        .number(index.stride)
        .watch(std::string(call.op_name()) + ": found an index out of range along axis " + std::to_string(index.axis) +
               ", expected each in [" + std::to_string(-index.size) + ", " + std::to_string(index.size) + ")")
        .run(walk);
  }
  return offsets;
}

void index(Context call, ConstTensor<void> x, std::span<bp_tensor* const> indices, MutTensor<void> out) {
  const IndexPlan plan(*call.frame->loop, indices);
  if (plan.count == 0) return;
  Launch(call, Kernel::gather, out.dtype())
      .tensor(*out.handle())
      .tensor(*x.handle())
      .memory(record_positions(call, plan))
      .number(plan.kept.count())
      .loop(walk_of(plan.joint))
      .loop(walk_of(plan.kept))
      .run(plan.count);
}

void index_put(Context call, ConstTensor<void> x, std::span<bp_tensor* const> indices, ConstTensor<void> values,
               bool accumulate, MutTensor<void> out) {
  record_move(call, *out.handle(), 0, *x.handle(), out.shape(), out.strides(), x.strides());
  const IndexPlan plan(*call.frame->loop, indices);
  if (plan.count == 0) return;
  Launch launch(call, accumulate ? Kernel::add_selected : Kernel::put_selected, out.dtype());
  if (accumulate) launch.function("add");
  launch.tensor(*out.handle())
      .tensor(*values.handle())
      .memory(record_positions(call, plan))
      .loop(walk_of(plan.joint))
      .loop(walk_of(plan.kept))
      .run_parts(plan.kept.count(), plan.joint.count(), 1 + plan.joint.sizes.size());
}

}  // namespace

void register_movement(const Registrar& registrar) {
  const auto row = [&](const char* op, bp_kernel_fn fn, uint32_t flags) {
    registrar.kernel(BP_KERNEL(op, kName, fn, .flags = flags));
  };
  row("bp::copy", kernel<copy>, BP_KERNEL_LOOP);
  row("bp::concat", kernel<concat>, BP_KERNEL_STRIDED);
  row("bp::slice_put", kernel<slice_put>, BP_KERNEL_STRIDED);
  row("bp::index", kernel<index>, BP_KERNEL_LOOP);
  row("bp::index_put", kernel<index_put>, BP_KERNEL_LOOP);
}

}  // namespace minimal
