// Reductions. One of many elements to few is cut into chunks, whose totals a second kernel joins.
#include <bit>

#include "kernels/families.hpp"

namespace backplane::cuda {
namespace {

constexpr uint32_t kLargestPack = 8;  // chunks begin where packs do

constexpr bp_dtype_mask kOrdered = BP_MASK_FLOATING | BP_MASK_INTEGER | BP_MASK_BOOL;

// Of a block that takes so many packs: some for each thread.
uint32_t threads_for(uint32_t packs) { return std::clamp(std::bit_floor(packs / 4 | 1), kWarp, kThreads); }

// A few elements are not worth a warp: a thread takes them one after the other.
bool along_rows(const Reduction& call, bool innermost_reduced) {
  return call.reduced.count >= kWarp && (innermost_reduced || call.kept.count < kThreads);
}

// How many chunks keep the device busy with one block each.
void set_chunks(const Call& call, Reduction& reduction, bool rows) {
  const uint32_t least = rows ? 4096 : 64;  // elements that are worth a chunk
  const uint64_t blocks = rows ? reduction.kept.count : reduction.kept.count / kThreads + 1;
  const uint64_t wanted = uint64_t{call.multiprocessors()} * 8 / std::max<uint64_t>(blocks, 1) + 1;
  const uint64_t possible = reduction.reduced.count / least + 1;
  const auto most = static_cast<uint32_t>(std::clamp<uint64_t>(std::min(wanted, possible), 1, 1024));
  const auto parts = [&](uint32_t size) { return (reduction.reduced.count + size - 1) / size; };
  reduction.chunk_size = (parts(most) + kLargestPack - 1) / kLargestPack * kLargestPack;
  reduction.chunks = std::max(parts(std::max(reduction.chunk_size, 1u)), 1u);
}

// `module_dtype` is the dtype that totals are of; the operand is converted as it is read.
void reduce(const Call& call, bp_dtype module_dtype) {
  const bp_tensor& out = call.output();
  if (count_of(out) == 0) return;
  const Strided operands = call.operands(call.compute());
  std::vector<int64_t> kept, kept_out, kept_x, reduced, reduced_x;
  bool innermost_reduced = true;
  for (size_t d = 0; d < operands.sizes.size(); ++d) {
    if (operands.sizes[d] == 1) continue;
    innermost_reduced = operands.strides[0][d] == 0;
    (innermost_reduced ? reduced : kept).push_back(operands.sizes[d]);
    (innermost_reduced ? reduced_x : kept_x).push_back(operands.strides[1][d]);
    if (!innermost_reduced) kept_out.push_back(operands.strides[0][d]);
  }
  if (operands.count() == 0) {  // a loop over nothing does not show the result's shape
    kept = shape_of(out), kept_out = byte_strides_of(out), kept_x.assign(kept.size(), 0);
    reduced = reduced_x = {0};
  }
  Reduction reduction{};
  reduction.kept = dimensions(kept, kept_out, kept_x);
  reduction.reduced = dimensions(reduced, std::vector<int64_t>(reduced.size(), 0), reduced_x);
  reduction.out = operands.data[0];
  reduction.x = operands.data[1];
  reduction.in_dtype = call.compute();
  const bool rows = along_rows(reduction, innermost_reduced);
  set_chunks(call, reduction, rows);
  if (reduction.chunks > 1) reduction.partial = call.scratch(uint64_t{reduction.kept.count} * reduction.chunks * 16);
  const std::string module = typed_module(module_dtype), name = call.row().name;
  if (rows) {
    const uint32_t blocks = std::min(reduction.kept.count, 65535u);
    call.launch(module, name + "_rows",
                {blocks, reduction.chunks, 1, threads_for(reduction.chunk_size / pack_of(module_dtype))}, reduction);
  } else {
    Grid grid = call.grid_for(reduction.kept.count);
    grid.y = reduction.chunks;
    call.launch(module, name + "_columns", grid, reduction);
  }
  if (reduction.chunks > 1)
    call.launch(module, name + "_chunks", {std::min(reduction.kept.count, 65535u), 1, 1, kWarp}, reduction);
}

void reduce_into(const Call& call) { reduce(call, call.output().dtype); }

void check_not_empty(const Call& call, int64_t elements) {
  BP_CHECK(count_of(call.output()) == 0 || elements > 0, VALUE, call.op_name(),
           ": found no elements to choose from; expected at least one along the reduced axes");
}

void extreme(const Call& call) {
  check_not_empty(call, count_of(call.input(0)));
  reduce(call, call.compute());
}

}  // namespace

void register_reductions(const Registration& registration) {
  const auto row = [&](const char* op, bp_kernel_fn fn, bp_dtype_mask dtypes, uint32_t flags,
                       uint32_t line = __builtin_LINE()) { registration.row(op, fn, dtypes, flags, __FILE__, line); };
  row("sum", kernel<reduce_into>, BP_MASK_ANY, BP_KERNEL_LOOP);
  row("prod", kernel<reduce_into>, BP_MASK_ANY, BP_KERNEL_LOOP);
  row("any", kernel<reduce_into>, BP_MASK_ANY, BP_KERNEL_LOOP);
  row("all", kernel<reduce_into>, BP_MASK_ANY, BP_KERNEL_LOOP);
  row("max", kernel<extreme>, kOrdered, BP_KERNEL_LOOP);
  row("min", kernel<extreme>, kOrdered, BP_KERNEL_LOOP);
}

}  // namespace backplane::cuda
