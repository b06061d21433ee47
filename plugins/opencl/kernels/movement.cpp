// Kernels that move elements: by their width, whatever they mean.
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

// Where the indices point: the element offset in x of each position, in scratch memory; and the two loops that walk
// `picked`.
struct Pointed {
  void* offsets = nullptr;
  Loop positions, kept;  // positions: picked; kept: x, picked
};
Pointed point(Context call, const ConstTensor<void>& x, std::span<bp_tensor* const> indices,
              const ConstTensor<void>& picked) {
  const IndexPlan plan(x.shape(), indices);
  const int64_t item = kItemSize[x.dtype()];
  const size_t rank = plan.positions().size();
  Pointed made;
  std::vector<int64_t> sizes, x_strides;
  for (size_t axis = 0; axis < x.shape().size(); ++axis) {
    if (plan.indexed(axis)) continue;
    sizes.push_back(x.shape()[axis]);
    x_strides.push_back(x.strides()[axis]);
  }
  std::vector<int64_t> seen = broadcast_strides(picked.shape(), picked.strides(), sizes.size() + rank);
  const auto split = seen.begin() + static_cast<ptrdiff_t>(plan.axes_before());
  const std::vector<int64_t> position_strides(split, split + static_cast<ptrdiff_t>(rank));
  seen.erase(split, split + static_cast<ptrdiff_t>(rank));
  made.positions = loop_of(call, Walk(plan.positions(), {Ints(position_strides)}, item));
  made.kept = loop_of(call, Walk(sizes, {Ints(x_strides), Ints(seen)}, item));
  if (made.positions.count == 0) return made;

  made.offsets = call.scratch(static_cast<uint64_t>(made.positions.count) * sizeof(int64_t));
  bp_tensor offsets{};
  offsets.dl.data = made.offsets;
  int64_t first = 1;
  for (size_t axis = 0; axis < indices.size(); ++axis) {
    if (!plan.indexed(axis)) continue;
    const ConstTensor<void> index(indices[axis]);
    Walk walk(plan.positions(), {broadcast_strides(index.shape(), index.strides(), rank)}, kItemSize[index.dtype()]);
    std::vector<int64_t> row_major(rank, sizeof(int64_t));
    for (size_t d = rank; d-- > 1;) row_major[d - 1] = row_major[d] * plan.positions()[d];
    walk.strides.insert(walk.strides.begin(), row_major);
    const int64_t size = x.shape()[axis];
    Launch(call, "add_offsets", defines_for("X", index.dtype()))
        .tensor(offsets)
        .tensor(*index.handle())
        .value(size)
        .value(x.strides()[axis])
        .value(std::exchange(first, 0))
        .watch(std::string(call.op_name()) + ": found an index out of range along axis " + std::to_string(axis) +
               ", expected each in [" + std::to_string(-size) + ", " + std::to_string(size) + ")")
        .run(walk);
  }
  return made;
}

void index(Context call, ConstTensor<void> x, std::span<bp_tensor* const> indices, MutTensor<void> out) {
  Pointed pointed = point(call, x, indices, ConstTensor<void>(out.handle()));
  std::swap(pointed.kept.strides[0], pointed.kept.strides[1]);  // the result first
  Launch(call, "gather", width_defines("OUT", out.dtype()))
      .tensor(*out.handle())
      .tensor(*x.handle())
      .memory(pointed.offsets)
      .bytes(pointed.positions)
      .bytes(pointed.kept)
      .run(out.size());
}

void index_put(Context call, ConstTensor<void> x, std::span<bp_tensor* const> indices, ConstTensor<void> values,
               bool accumulate, MutTensor<void> out) {
  move(call, *out.handle(), 0, *x.handle(), out.shape(), out.strides(), x.strides());
  const Pointed pointed = point(call, ConstTensor<void>(out.handle()), indices, values);
  const std::string adds = "#define JOIN(a, b) bp_add_" + scalar_name(out.dtype()) + "(a, b)\n";
  if (pointed.positions.count == 0) return;
  Launch(call, "scatter",
         accumulate ? defines_for("OUT", out.dtype()) + adds
                    : width_defines("OUT", out.dtype()) + "#define JOIN(a, b) (b)\n")
      .tensor(*out.handle())
      .tensor(*values.handle())
      .memory(pointed.offsets)
      .bytes(pointed.positions)
      .bytes(pointed.kept)
      .run(pointed.kept.count);
}

}  // namespace

void register_movement(const Registrar& registrar) {
  const auto row = [&](const char* op, bp_kernel_fn fn, uint32_t flags) {
    registrar.kernel(BP_KERNEL(op, kName, fn, .flags = flags));
  };
  row("bp::copy", kernel<copy>, BP_KERNEL_LOOP);
  row("bp::concat", kernel<concat>, BP_KERNEL_STRIDED);
  row("bp::slice_put", kernel<slice_put>, BP_KERNEL_STRIDED);
  row("bp::index", kernel<index>, BP_KERNEL_STRIDED);
  row("bp::index_put", kernel<index_put>, BP_KERNEL_STRIDED);
}

}  // namespace opencl
