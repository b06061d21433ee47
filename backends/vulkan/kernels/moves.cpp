// concat and slice_put: blocks of elements moved to stated places, bits as they are; and the moves and casts that other
// families record.
#include <algorithm>

#include "kernels/kernels.hpp"

namespace backplane::vulkan {
namespace {

// An elementwise loop of two operands, as shaders/loop.glsl reads it.
void record_loop(const Call& call, Shader shader, const Operand& to, const Operand& from, const Sizes& from_strides) {
  constexpr uint32_t kRowsInMemory = 7;
  Rows rows;
  rows.add(to.shape, {&to.strides, &from_strides});
  Push push = call.push();
  push.at = {to.data, from.data};
  push.n[0] = static_cast<uint32_t>(to.count());
  push.n[1] = rows.rank();
  const bool pushed = rows.into(std::span(push.n).subspan(3));
  if (!pushed) push.dims = call.stage(rows);
  shader.constants[3] = static_cast<uint8_t>((pushed ? std::max(rows.rank(), 1u) : kRowsInMemory) << 5);
  call.dispatch(shader, push, groups_for(to.count()), {to.range()}, {from.range()});
}

// Do the elements of both follow each other in one order?
bool is_one_piece(const Operand& to, const Sizes& from_strides) {
  Rows rows;
  rows.add(to.shape, {&to.strides, &from_strides});
  const auto row = rows.values();
  return rows.rank() == 0 || (rows.rank() == 1 && row[Rows::kHead] == 1 && row[Rows::kHead + 1] == 1);
}
bool overlap(const Range& a, const Range& b) { return a.begin < b.end && b.begin < a.end; }

// The part of `whole` from `start` on along one axis, `size` elements that are `step` apart.
Operand part_of(const Operand& whole, size_t axis, int64_t start, int64_t size, int64_t step) {
  Operand part = whole;
  part.data += static_cast<uint64_t>(start * whole.strides[axis] * plugin::kItemSize[whole.dtype]);
  part.shape[axis] = size;
  part.strides[axis] *= step;
  return part;
}

void concat(const Call& call) {
  const Operand out = call.output(0);
  const auto axis = static_cast<size_t>(call.integer(1));
  int64_t start = 0;
  for (const Operand& piece : call.inputs(0)) {
    const int64_t size = piece.shape[axis];
    record_move(call, part_of(out, axis, start, size, 1), piece);
    start += size;
  }
}

// Per axis, start, count and step have arrived, and the shape rule has seen that the value broadcasts.
void slice_put(const Call& call) {
  const Operand out = call.output(0), x = call.input(0);
  Operand value = call.input(1);
  const Sizes axes = call.integers(2), starts = call.integers(3), counts = call.integers(4), steps = call.integers(5);
  Operand target = out;
  for (size_t i = 0; i < axes.size(); ++i)
    target = part_of(target, static_cast<size_t>(axes[i]), starts[i], counts[i], steps[i]);
  if (value.data == out.data && value.count() > 0) {  // in place, the value may be the very tensor that is written
    const Operand kept = call.scratch(value.dtype, value.shape);
    record_move(call, kept, value);
    value = kept;
  }
  if (x.data != out.data) record_move(call, out, x);
  record_move(call, target, value);
}

constexpr Row kRows[] = {
    {"bp::concat", kernel<concat>, BP_MASK_ANY, BP_KERNEL_STRIDED},
    {"bp::slice_put", kernel<slice_put>, BP_MASK_ANY, BP_KERNEL_STRIDED | BP_KERNEL_INPLACE},
};

}  // namespace

void record_move(const Call& call, const Operand& to, const Operand& from) {
  if (to.count() == 0) return;
  const Sizes strides = broadcast_strides(from, to.shape);
  if (is_one_piece(to, strides) && !overlap(to.range(), from.range())) {
    const Device& device = call.stream().device();
    const auto bytes = static_cast<uint64_t>(to.count()) * plugin::kItemSize[to.dtype];
    return call.stream().copy(device.place(to.data, bytes), device.place(from.data, bytes), bytes);
  }
  record_loop(call, {Module::move, {0, static_cast<uint8_t>(to.dtype), 0, 0}}, to, from, strides);
}

void record_cast(const Call& call, const Operand& to, const Operand& from) {
  if (to.count() == 0) return;
  const bool doubles = class_of(to.dtype) == Class::kFloat64 || class_of(to.dtype) == Class::kComplex128 ||
                       class_of(from.dtype) == Class::kFloat64 || class_of(from.dtype) == Class::kComplex128;
  record_loop(call,
              {doubles ? Module::cast_float64 : Module::cast,
               {0, static_cast<uint8_t>(from.dtype), static_cast<uint8_t>(to.dtype), 0}},
              to, from, from.strides);
}

void register_moves(const plugin::Registrar& registrar, Backend&) { register_rows(registrar, kRows, __FILE__); }

}  // namespace backplane::vulkan
