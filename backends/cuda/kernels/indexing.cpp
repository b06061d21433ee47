// index and index_put: advanced indexing by integer tensors, one per leading axis, in the host's loop over selected
// elements. An index out of range is an error of the data.
#include "backplane/plugin/indexing.hpp"

#include <bit>

#include "kernels/families.hpp"
#include "kernels/radix.hpp"

namespace backplane::cuda {
namespace {

// Index positions that a thread takes in turn, where sorting them would take longer.
constexpr uint32_t kPutInTurn = 32;

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

// The kept axes of a position may be copied in wider elements, if every position is aligned to them.
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

// Positions sorted by the places that they point to; then a group of threads takes each run.
void put_runs(const Call& call, const Indexing& indexing, const std::string& module, const std::string& kernel) {
  Runs runs{};
  runs.nowhere = 1;
  for (int32_t k = 0; k < indexing.n_indices; ++k) runs.nowhere *= static_cast<uint64_t>(indexing.indices[k].axis_size);
  const uint32_t count = indexing.positions.count, kept = indexing.kept.count;
  const auto bits = static_cast<uint32_t>(std::bit_width(runs.nowhere));
  runs.wide = bits > 32;
  const RadixSort sort(call, 1, count, runs.wide ? 8 : 4, bits);
  char *keys = sort.keys(), *offsets = call.aligned_scratch(uint64_t{count} * sizeof(int64_t));
  call.launch("moves", runs.wide ? "number_places_8" : "number_places_4", call.grid_for(count), indexing, keys, offsets,
              runs.nowhere);
  const RadixSort::Sorted sorted = sort.sort();
  runs.keys = sorted.keys, runs.order = sorted.positions;
  runs.offsets = reinterpret_cast<const int64_t*>(offsets);
  // Neighbouring threads take neighbouring elements of a run, or else neighbouring runs.
  const bool side_by_side = indexing.kept.rank > 0 && indexing.kept.x[0] == item_of(call.output());
  runs.group = side_by_side ? std::min(std::bit_ceil(kept), kWarp) : 1;
  Grid grid = call.grid_for(uint64_t{count} * runs.group);
  const uint32_t busy = call.multiprocessors() * 32;  // blocks; few runs of many elements are cut to have as many
  grid.y = std::clamp((kept + runs.group - 1) / runs.group, 1u, std::clamp(busy / grid.x, 1u, 65535u));
  call.launch(module, kernel, grid, indexing, runs);
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
  const std::string module = std::string("put_") + plugin::dtype_name(out.dtype);
  const std::string kernel = call.has(3) && call.integer(3) != 0 ? "put_add" : "put";
  if (made.positions.count <= kPutInTurn)
    call.launch(module, kernel, call.grid_for(made.kept.count), made);
  else
    put_runs(call, made, module, kernel + "_runs");
}

}  // namespace

void register_indexing(const Registration& registration) {
  registration.row("index", kernel<index>, BP_MASK_ANY, BP_KERNEL_LOOP, __FILE__, __LINE__);
  registration.row("index_put", kernel<index_put>, BP_MASK_ANY, BP_KERNEL_LOOP | BP_KERNEL_INPLACE, __FILE__, __LINE__);
}

}  // namespace backplane::cuda
