// Kernels that move elements, by their width only.
#include "kernels/launch.hpp"

namespace opencl {
namespace {

void copy(Context call, ConstTensor<void> x, MutTensor<void> out) {
  const bp_dtype dtypes[] = {out.dtype(), x.dtype()};
  Launch(call, "unary",
         width_defines("OUT", out.dtype()) + width_defines("X", out.dtype()) + "#define FUNCTION(a) (a)\n")
      .tensor(*out.handle())
      .tensor(*x.handle())
      .run(Walk(call, *out.handle(), 2, dtypes));
}

void concat(Context call, std::span<bp_tensor* const> arrays, int64_t axis, MutTensor<void> out) {
  const auto along = static_cast<int32_t>(axis);
  int64_t bytes = 0;
  for (bp_tensor* array : arrays) {
    const ConstTensor<void> piece(array);
    move(call, *out.handle(), bytes, *array, piece.shape(), out.strides(), piece.strides());
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
  move(call, *out.handle(), 0, *x.handle(), out.shape(), out.strides(), x.strides());
  move(call, *out.handle(), first * int64_t{kItemSize[out.dtype()]}, *value.handle(), shape, strides,
       broadcast_strides(value.shape(), value.strides(), shape.size()));
}

// A loop for kernels that walk two at once: of at most kMaxDims dimensions.
Loop loop_of(Context call, const Walk& walk) {
  BP_CHECK(walk.sizes.size() <= size_t{kMaxDims}, NOT_IMPLEMENTED, call.op_name(), ": found ", walk.sizes.size(),
           " axes, expected at most ", kMaxDims, " on this device");
  Loop loop;
  loop.rank = static_cast<int64_t>(walk.sizes.size());
  loop.count = walk.count();
  for (size_t d = 0; d < walk.sizes.size(); ++d) {
    loop.sizes[d] = walk.sizes[d];
    for (size_t k = 0; k < walk.strides.size(); ++k) loop.strides[k][d] = walk.strides[k][d];
  }
  return loop;
}

Loop loop_of(Context call, const IndexPlan::Part& part) {
  Walk walk;
  walk.sizes = part.sizes;
  walk.strides = {part.indexed, part.selected};
  return loop_of(call, walk);
}

// Where the indices point: for each of the joint positions its byte offset in the indexed tensor, in scratch memory.
void* point(Context call, const IndexPlan& plan) {
  const uint64_t bytes = static_cast<uint64_t>(plan.joint.count()) * sizeof(int64_t);
  bp_tensor offsets{};
  offsets.dl.data = call.scratch(bytes);
  const int64_t zero = 0;
  check(clEnqueueFillBuffer(stream_of(call.frame->stream).queue(), memory_of(offsets.dl.data), &zero, sizeof(zero), 0,
                            bytes, 0, nullptr, nullptr),
        "clEnqueueFillBuffer");
  const size_t rank = plan.joint.sizes.size();
  std::vector<int64_t> row_major(rank, sizeof(int64_t));
  for (size_t d = rank; d-- > 1;) row_major[d - 1] = row_major[d] * plan.joint.sizes[d];
  for (const IndexPlan::Index& index : plan.indices) {
    Walk walk;
    walk.sizes = plan.joint.sizes;
    walk.strides = {row_major, index.strides};
    Launch(call, "add_offsets", defines_for("X", index.dtype))
        .tensor(offsets)
        .tensor(*index.tensor)
        .value(index.size)
        .value(index.stride)
        .watch(std::string(call.op_name()) + ": found an index out of range along axis " + std::to_string(index.axis) +
               ", expected each in [" + std::to_string(-index.size) + ", " + std::to_string(index.size) + ")")
        .run(walk);
  }
  return offsets.dl.data;
}

void index(Context call, ConstTensor<void> x, std::span<bp_tensor* const> indices, MutTensor<void> out) {
  const IndexPlan plan(*call.frame->loop, indices);
  if (plan.count == 0) return;
  Launch(call, "gather", width_defines("OUT", out.dtype()))
      .tensor(*out.handle())
      .tensor(*x.handle())
      .memory(point(call, plan))
      .bytes(loop_of(call, plan.joint))
      .bytes(loop_of(call, plan.kept))
      .run(plan.count);
}

void index_put(Context call, ConstTensor<void> x, std::span<bp_tensor* const> indices, ConstTensor<void> values,
               bool accumulate, MutTensor<void> out) {
  move(call, *out.handle(), 0, *x.handle(), out.shape(), out.strides(), x.strides());
  const IndexPlan plan(*call.frame->loop, indices);
  if (plan.count == 0) return;
  const std::string adds = "#define JOIN(a, b) bp_add_" + scalar_name(out.dtype()) + "(a, b)\n";
  Launch(call, "scatter",
         accumulate ? defines_for("OUT", out.dtype()) + adds
                    : width_defines("OUT", out.dtype()) + "#define JOIN(a, b) (b)\n")
      .tensor(*out.handle())
      .tensor(*values.handle())
      .memory(point(call, plan))
      .bytes(loop_of(call, plan.joint))
      .bytes(loop_of(call, plan.kept))
      .run(plan.kept.count());
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

}  // namespace opencl
