// argsort: lines that fit are sorted by one block each, longer ones by a launch per step of the network.
#include <bit>

#include "kernels/families.hpp"

namespace backplane::cuda {
namespace {

void argsort(const Call& call) {
  const bp_tensor &x = call.input(0), &out = call.output();
  if (count_of(out) == 0) return;
  auto sizes = shape_of(x), x_strides = byte_strides_of(x), out_strides = byte_strides_of(out);
  Sorting sorting{};
  int64_t length = 1;
  if (x.dl.ndim > 0) {
    const auto axis = static_cast<ptrdiff_t>(call.integer(1));
    length = sizes[static_cast<size_t>(axis)];
    sorting.x_step = x_strides[static_cast<size_t>(axis)], sorting.out_step = out_strides[static_cast<size_t>(axis)];
    for (auto* list : {&sizes, &x_strides, &out_strides}) list->erase(list->begin() + axis);
  }
  BP_CHECK(length <= int64_t{1} << 30, NOT_IMPLEMENTED, call.op_name(), ": found an axis of ", length,
           " elements, expected at most 2^30. Fix: sort parts and merge them");
  sorting.lines = dimensions(sizes, out_strides, x_strides);
  sorting.x = data_of(x), sorting.out = data_of(out);
  sorting.length = static_cast<uint32_t>(length), sorting.padded = std::bit_ceil(sorting.length);
  sorting.descending = call.integer(2) != 0;
  const std::string module = typed_module(call.compute());
  const uint32_t lines = sorting.lines.count;
  if (sorting.padded <= kSortedInBlock) {
    call.launch(module, "sort_in_block", {std::min(lines, 65535u), 1, 1, sorting.padded > 2 * kWarp ? kThreads : kWarp},
                sorting);
    return;
  }
  sorting.order = reinterpret_cast<uint32_t*>(call.scratch(uint64_t{lines} * sorting.padded * sizeof(uint32_t)));
  Grid grid = call.grid_for(sorting.padded);
  grid.y = std::min(lines, 65535u);
  const auto step = [&](uint32_t by, uint32_t run) { call.launch(module, "sort_step", grid, sorting, by, run); };
  step(0, 0);
  for (uint64_t run = 2; run <= sorting.padded; run *= 2)
    for (uint64_t by = run / 2; by > 0; by /= 2) step(static_cast<uint32_t>(by), static_cast<uint32_t>(run));
  step(1, 0);
}

}  // namespace

void register_sorting(const Registration& registration) {
  registration.row("argsort", kernel<argsort>, BP_MASK_FLOATING | BP_MASK_INTEGER | BP_MASK_BOOL, BP_KERNEL_STRIDED,
                   __FILE__, __LINE__);
}

}  // namespace backplane::cuda
