// Positions of extremes, and running sums, along one axis of contiguous tensors. Long lines in which an extreme is
// looked for are cut into chunks, whose best elements a second kernel joins.
#include <bit>

#include "kernels/along_axis.hpp"
#include "kernels/families.hpp"

namespace backplane::cuda {
namespace {

// Lines along the axis of argument 1; x flattened where it is absent.
Lines lines_along(const Call& call) {
  const bp_tensor& x = call.input(0);
  Lines lines{1, 1, count_of(x), data_of(x), data_of(call.output()), call.compute(), static_cast<int32_t>(item_of(x))};
  if (!call.has(1) || x.dl.ndim == 0) return lines;
  const auto axis = static_cast<int32_t>(call.integer(1));
  lines.length = x.dl.shape[axis];
  for (int32_t d = 0; d < x.dl.ndim; ++d)
    if (d != axis) lines.count *= x.dl.shape[d];
  for (int32_t d = axis + 1; d < x.dl.ndim; ++d) lines.inner *= x.dl.shape[d];
  return lines;
}

// A block per line, some packs for each thread.
Grid block_per_line(int64_t lines, int64_t length, bp_dtype dtype) {
  const auto packs = static_cast<uint64_t>(length) / pack_of(dtype) / kHeldPacks;
  return {static_cast<uint32_t>(std::min<int64_t>(lines, 65535)), 1, 1,
          static_cast<uint32_t>(std::clamp<uint64_t>(std::bit_floor(packs | 1), kWarp, kThreads))};
}

// As many as keep the device busy, each of some elements for each thread, which counts them in 32 bits.
void set_chunks(const Call& call, ArgExtreme& extreme, int64_t blocks, int64_t least) {
  constexpr int64_t kMost = int64_t{1} << 30;
  const int64_t length = extreme.lines.length;
  const int64_t wanted = int64_t{call.multiprocessors()} * 8 / blocks + 1;
  const int64_t chunks = std::clamp<int64_t>(std::min(wanted, length / least), 1, 1024);
  constexpr int64_t kAligned = 8;  // chunks begin where packs do
  extreme.chunk_size = std::min((length + chunks - 1) / chunks, kMost);
  extreme.chunk_size = (extreme.chunk_size + kAligned - 1) / kAligned * kAligned;
  extreme.chunks = static_cast<uint32_t>((length + extreme.chunk_size - 1) / extreme.chunk_size);
}

void arg_extreme(const Call& call) {
  ArgExtreme extreme{lines_along(call), nullptr, 1, 0};
  const Lines& lines = extreme.lines;
  if (count_of(call.output()) == 0) return;
  BP_CHECK(lines.length > 0, VALUE, call.op_name(),
           ": found no elements to choose from; expected at least one along the reduced axes");
  const bool rows = lines.inner == 1;
  Grid grid = rows ? Grid{} : call.grid_for(static_cast<uint64_t>(lines.count));
  set_chunks(call, extreme, rows ? lines.count : (lines.count + kThreads - 1) / kThreads, rows ? 4096 : 64);
  if (rows) grid = block_per_line(lines.count, extreme.chunk_size, call.compute());
  grid.y = extreme.chunks;
  if (extreme.chunks > 1) extreme.partial = call.scratch(static_cast<uint64_t>(lines.count) * extreme.chunks * 16);
  const std::string module = typed_module(call.compute()), name = call.row().name;
  call.launch(module, name + (rows ? "_rows" : "_columns"), grid, extreme);
  if (extreme.chunks > 1)
    call.launch(module, name + "_chunks", {static_cast<uint32_t>(std::min<int64_t>(lines.count, 65535)), 1, 1, kWarp},
                extreme);
}

void cumsum(const Call& call) {
  const Lines lines = lines_along(call);
  if (count_of(call.output()) == 0) return;
  const bp_dtype dtype = call.output().dtype;
  const auto begins_packs = [&](const char* data) {
    return reinterpret_cast<uintptr_t>(data) % (pack_of(dtype) * static_cast<uint64_t>(item_of(call.output()))) == 0;
  };
  const bool packs = lines.inner == 1 && lines.in_dtype == static_cast<int32_t>(dtype) &&
                     lines.length % pack_of(dtype) == 0 && begins_packs(lines.x) && begins_packs(lines.out);
  const std::string module = typed_module(dtype);
  // Few lines that lie side by side are not enough to keep a thread for each busy.
  if (lines.inner >= kWarp && lines.count >= int64_t{call.multiprocessors()} * kWarp)
    call.launch(module, "cumsum_columns", call.grid_for(static_cast<uint64_t>(lines.count)), lines);
  else
    call.launch(module, packs ? "cumsum_packs" : "cumsum_elements", block_per_line(lines.count, lines.length, dtype),
                lines);
}

}  // namespace

void register_along_axis(const Registration& registration) {
  constexpr bp_dtype_mask kOrdered = BP_MASK_FLOATING | BP_MASK_INTEGER | BP_MASK_BOOL;
  registration.row("argmax", kernel<arg_extreme>, kOrdered, 0, __FILE__, __LINE__);
  registration.row("argmin", kernel<arg_extreme>, kOrdered, 0, __FILE__, __LINE__);
  registration.row("cumsum", kernel<cumsum>, BP_MASK_ANY, 0, __FILE__, __LINE__);
}

}  // namespace backplane::cuda
