// index and index_put: advanced indexing by integer tensors, one per leading axis, along the host's loop over what they
// select. An index out of range is an error of the data.
#include "backplane/plugin/indexing.hpp"

#include "kernels/families.hpp"

namespace backplane::cuda {
namespace {

// The kernels' argument.
Indexing arguments(const Call& call, const plugin::IndexPlan& plan, char* indexed, char* selected) {
  const auto& [sizes, own, seen] = plan.joint;
  Indexing made{};
  made.kept = dimensions(plan.kept.sizes, plan.kept.selected, plan.kept.indexed);
  made.positions = dimensions(sizes, seen, own);
  made.x = indexed;
  made.picked = selected;
  for (const plugin::IndexPlan::Index& from : plan.indices) {
    BP_CHECK(made.n_indices < kMaxRank, NOT_IMPLEMENTED, "cuda: found more than ", kMaxRank, " index tensors");
    Indexing::Index& index = made.indices[made.n_indices++];
    index = {data_of(*from.tensor), from.size, from.stride, {}, from.dtype, from.axis};
    for (size_t d = sizes.size(), to = 0; d-- > 0;)  // the dimensions that dimensions() keeps
      if (sizes[d] != 1) index.strides[to++] = from.strides[d];
  }
  made.error = call.expect_error();
  return made;
}

// A copy of all that a tensor spans, at the same strides; gives where its first element is in it.
char* kept_apart(const Call& call, const bp_tensor& tensor) {
  const auto shape = shape_of(tensor), strides = byte_strides_of(tensor);
  int64_t low = 0, high = item_of(tensor);
  for (size_t d = 0; d < shape.size(); ++d) (strides[d] < 0 ? low : high) += (shape[d] - 1) * strides[d];
  char* made = call.scratch(static_cast<uint64_t>(high - low)) - low;
  launch_copy(call, copy_operands(made, strides, data_of(tensor), strides, shape), item_of(tensor));
  return made;
}

// What is kept of each position may be moved in wider elements, where every position begins at one.
int64_t widen_kept(plugin::IndexPlan& plan, char* indexed, char* selected, int64_t item) {
  int64_t widest = kWidest;
  const auto begins_at_one = [&](int64_t step) {
    while (step % widest != 0) widest /= 2;
  };
  for (const int64_t step : plan.joint.selected) begins_at_one(step);
  for (const plugin::IndexPlan::Index& index : plan.indices) begins_at_one(index.stride);
  Strided kept{plan.kept.sizes, {plan.kept.selected, plan.kept.indexed}, {selected, indexed}, {}};
  const int64_t width = widened(item, kept, widest);
  plan.kept = {std::move(kept.sizes), std::move(kept.strides[1]), std::move(kept.strides[0])};
  return width;
}

void index(const Call& call) {
  plugin::IndexPlan plan(*call.loop(), call.tensors(1));
  if (plan.count == 0) return;
  char *x = data_of(call.input(0)), *out = data_of(call.output());
  const int64_t width = widen_kept(plan, x, out, item_of(call.output()));
  const Indexing made = arguments(call, plan, x, out);
  call.launch("moves", "index_" + std::to_string(width),
              call.grid_for(uint64_t{made.kept.count} * made.positions.count), made);
}

void index_put(const Call& call) {
  const bp_tensor &x = call.input(0), &values = call.input(2), &out = call.output();
  const plugin::IndexPlan plan(*call.loop(), call.tensors(1));
  char* selected = data_of(values);
  // In place, the values may be the very tensor that is written.
  if (selected == data_of(out) && plan.count > 0) selected = kept_apart(call, values);
  if (data_of(x) != data_of(out))
    launch_copy(call, copy_operands(data_of(out), byte_strides_of(out), data_of(x), byte_strides_of(x), shape_of(x)),
                item_of(out));
  if (plan.count == 0) return;
  const Indexing made = arguments(call, plan, data_of(out), selected);
  const bool accumulate = call.has(3) && call.integer(3) != 0;
  call.launch(typed_module(out.dtype), accumulate ? "put_add" : "put", call.grid_for(made.kept.count), made);
}

}  // namespace

void register_indexing(const Registration& registration) {
  registration.row("index", kernel<index>, BP_MASK_ANY, BP_KERNEL_LOOP, __FILE__, __LINE__);
  registration.row("index_put", kernel<index_put>, BP_MASK_ANY, BP_KERNEL_LOOP | BP_KERNEL_INPLACE, __FILE__, __LINE__);
}

}  // namespace backplane::cuda
