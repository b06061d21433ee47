// Elements moved as they are, or converted: copy, cast, concat, slice_put.
#include "kernels/families.hpp"

namespace backplane::cuda {

Strided copy_operands(char* to, std::vector<int64_t> to_strides, char* from, std::vector<int64_t> from_strides,
                      std::vector<int64_t> shape) {
  return {std::move(shape), {std::move(to_strides), std::move(from_strides)}, {to, from}, {Number{}, Number{}}};
}

namespace {

// The dimension other than the innermost along which the operand is contiguous, if the result is contiguous along the
// innermost; 0 if it does not exist, or is short.
int32_t turned(const Loop& loop, int64_t width) {
  constexpr uint32_t kShort = 8;
  if (!loop.data[1] || loop.rank < 2 || loop.strides[0][0] != width || loop.strides[1][0] == width) return 0;
  for (int32_t d = 1; d < loop.rank; ++d)
    if (loop.strides[1][d] == width && loop.sizes[d].size >= kShort && loop.sizes[0].size >= kShort) return d;
  return 0;
}

void turn(const Call& call, Loop& loop, int32_t dimension, int64_t width) {
  std::swap(loop.sizes[1], loop.sizes[dimension]);
  for (auto& strides : loop.strides) std::swap(strides[1], strides[dimension]);
  const auto squares = [&](int d) { return uint64_t{(loop.sizes[d].size + kSquare - 1) / kSquare}; };
  const uint64_t blocks = squares(0) * squares(1) * (loop.count / loop.sizes[0].size / loop.sizes[1].size);
  call.launch("moves", "turn_" + std::to_string(width), {static_cast<uint32_t>(std::min<uint64_t>(blocks, 1 << 20))},
              loop);
}

}  // namespace

void launch_copy(const Call& call, Strided operands, int64_t width) {
  width = widened(width, operands);
  for_each_loop(operands, [&](Loop& loop) {
    if (const int32_t dimension = turned(loop, width)) return turn(call, loop, dimension, width);
    call.launch("moves", "copy_" + std::to_string(width), call.grid_for(loop.count), loop);
  });
}

namespace {

void copy(const Call& call) { launch_copy(call, call.operands(call.compute()), plugin::kItemSize[call.compute()]); }

void cast(const Call& call) {
  const int64_t items[] = {item_of(call.output()), plugin::kItemSize[call.compute()]};
  call.for_each_loop(call.compute(), [&](Loop& loop) {
    loop.in_dtype = call.compute();
    const bool flat = loop.data[1] && lies_in_packs(loop, items, kCastTogether);
    call.launch(typed_module(call.output().dtype), flat ? "cast_flat" : "cast",
                call.grid_for(flat ? loop.count / kCastTogether + 1 : loop.count), loop);
  });
}

void concat(const Call& call) {
  const bp_tensor& out = call.output();
  const auto axis = static_cast<size_t>(call.integer(1));
  const auto strides = byte_strides_of(out);
  char* to = data_of(out);
  for (uint32_t k = 0; k < call.value(0).count; ++k) {
    const bp_tensor& piece = *call.value(0).u.tensors[k];
    launch_copy(call, copy_operands(to, strides, data_of(piece), byte_strides_of(piece), shape_of(piece)),
                item_of(out));
    to += piece.dl.shape[axis] * strides[axis];
  }
}

// Per axis, start, count and step have arrived, and the shape rule has seen that the value broadcasts.
void slice_put(const Call& call) {
  const bp_tensor &x = call.input(0), &value = call.input(1), &out = call.output();
  const auto axes = call.integers(2), starts = call.integers(3), counts = call.integers(4), steps = call.integers(5);
  auto shape = shape_of(out);
  auto strides = byte_strides_of(out);
  char* to = data_of(out);
  const int64_t width = item_of(out);
  char* from = data_of(value);
  auto from_strides = byte_strides_of(value);
  if (from == to && count_of(value) > 0) {  // in place, the value may be the very tensor that is written
    from = call.scratch(value.nbytes);
    int64_t step = width;
    for (size_t d = from_strides.size(); d-- > 0; step *= value.dl.shape[d]) from_strides[d] = step;
    launch_copy(call, copy_operands(from, from_strides, data_of(value), byte_strides_of(value), shape_of(value)),
                width);
  }
  if (data_of(x) != to) launch_copy(call, copy_operands(to, strides, data_of(x), byte_strides_of(x), shape), width);
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(axes[i]);
    to += starts[i] * strides[axis];
    shape[axis] = counts[i];
    strides[axis] *= steps[i];
  }
  std::vector<int64_t> spread(shape.size(), 0);
  for (size_t d = 0; d < from_strides.size(); ++d)
    if (value.dl.shape[d] != 1) spread[shape.size() - from_strides.size() + d] = from_strides[d];
  launch_copy(call, copy_operands(to, strides, from, spread, shape), width);
}

}  // namespace

void register_placement(const Registration& registration) {
  const auto row = [&](const char* op, bp_kernel_fn fn, uint32_t flags, uint32_t line = __builtin_LINE()) {
    registration.row(op, fn, BP_MASK_ANY, flags, __FILE__, line);
  };
  row("copy", kernel<copy>, BP_KERNEL_LOOP);
  row("cast", kernel<cast>, BP_KERNEL_LOOP | BP_KERNEL_IMMEDIATES);
  row("concat", kernel<concat>, BP_KERNEL_STRIDED);
  row("slice_put", kernel<slice_put>, BP_KERNEL_STRIDED | BP_KERNEL_INPLACE);
}

}  // namespace backplane::cuda
