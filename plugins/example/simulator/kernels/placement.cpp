// concat and slice_put: blocks of elements moved to stated places.
#include <algorithm>

#include "kernels.hpp"
#include "walk.hpp"

namespace sim {
namespace {

// The part of `whole` from `start` on along one axis, `size` elements that are `step` apart.
Operand part_of(const Operand& whole, size_t axis, int64_t start, int64_t size, int64_t step) {
  Operand part = whole;
  part.data += start * whole.strides[axis] * static_cast<int64_t>(kItemSize[whole.dtype]);
  part.shape[axis] = size;
  part.strides[axis] *= step;
  return part;
}

void concat(const Call& call) {
  const Operand out = call.output(0);
  const auto axis = static_cast<size_t>(call.integer(1));
  std::vector<std::pair<Operand, Operand>> moves;
  int64_t start = 0;
  for (const Operand& piece : call.inputs(0)) {
    const int64_t size = piece.shape[axis];
    if (piece.count() > 0) moves.emplace_back(piece, part_of(out, axis, start, size, 1));
    start += size;
  }
  dispatch_width(call.compute(), [&]<class T>() {
    call.record([moves] {
      for (const auto& [from, to] : moves) copy_elements<T>(from, to);
    });
  });
}

// Per axis, start, count and step have arrived, and the shape rule has seen that the value broadcasts.
void slice_put(const Call& call) {
  const Operand out = call.output(0);
  const std::vector<int64_t> axes = call.integers(2), starts = call.integers(3), counts = call.integers(4),
                             steps = call.integers(5);
  Operand target = out;
  for (size_t i = 0; i < axes.size(); ++i)
    target = part_of(target, static_cast<size_t>(axes[i]), starts[i], counts[i], steps[i]);
  dispatch_width(call.compute(), [&]<class T>() {
    call.record([x = call.input(0), value = call.input(1), out, target] {
      std::vector<char> kept;  // in place, the value may be the very tensor that is written
      const Operand from = value.data == out.data ? copy_of<T>(value, kept) : value;
      if (x.data != out.data) copy_elements<T>(x, out);
      copy_elements<T>(from, target);
    });
  });
}

constexpr Row kRows[] = {
    {"bp::concat", kernel<concat>, kAll, BP_KERNEL_STRIDED},
    {"bp::slice_put", kernel<slice_put>, kAll, BP_KERNEL_STRIDED | BP_KERNEL_INPLACE},
};

}  // namespace

Table placement_kernels() { return {__FILE__, kRows}; }

}  // namespace sim
