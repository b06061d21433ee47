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
  const auto axis = static_cast<size_t>(call.axis(1, out.ndim()));
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

// Python's reading of start:stop:step over an axis: bounds that are absent or beyond an end mean that end.
struct Slice {
  int64_t start, count;
};
Slice resolve_slice(std::optional<int64_t> start, std::optional<int64_t> stop, int64_t step, int64_t size) {
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
  const auto bound = [&](std::optional<int64_t> given, int64_t absent) {
    return given ? std::clamp(*given < 0 ? *given + size : *given, low, high) : absent;
  };
  const int64_t first = bound(start, step > 0 ? low : high), last = bound(stop, step > 0 ? high : low);
  const int64_t reach = step > 0 ? last - first : first - last, stride = step > 0 ? step : -step;
  return {first, reach <= 0 ? 0 : (reach + stride - 1) / stride};
}

// The shape rule knows no slices: whether the value fits into one is the kernel's to say.
void check_broadcast(const Call& call, const Operand& value, const Operand& target) {
  const size_t missing = target.shape.size() - std::min(value.shape.size(), target.shape.size());
  BP_CHECK(value.shape.size() <= target.shape.size(), SHAPE, call.op_name(), ": found a value of ", value.shape.size(),
           " axes, expected at most the ", target.shape.size(), " of x");
  for (size_t i = 0; i < value.shape.size(); ++i)
    BP_CHECK(value.shape[i] == 1 || value.shape[i] == target.shape[missing + i], SHAPE, call.op_name(), ": found size ",
             value.shape[i], " of value along axis ", missing + i, " of the slice, expected 1 or ",
             target.shape[missing + i]);
}

void slice_put(const Call& call) {
  const Operand out = call.output(0);
  const std::vector<int64_t> axes = call.integers(2), steps = call.integers(5);
  const auto starts = call.optional_integers(3), stops = call.optional_integers(4);
  Operand target = out;
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(axes[i] < 0 ? axes[i] + out.ndim() : axes[i]);
    BP_CHECK(steps[i] != 0, VALUE, call.op_name(), ": found step 0 along axis ", axes[i], ", expected another");
    const Slice slice = resolve_slice(starts[i], stops[i], steps[i], out.shape[axis]);
    target = part_of(target, axis, slice.count > 0 ? slice.start : 0, slice.count, steps[i]);
  }
  check_broadcast(call, call.input(1), target);
  dispatch_width(call.compute(), [&]<class T>() {
    call.record([x = call.input(0), value = call.input(1), out, target] {
      if (x.data != out.data) copy_elements<T>(x, out);
      std::vector<char> kept;  // in place, the value may be the very tensor that is written
      copy_elements<T>(value.data == out.data ? copy_of<T>(value, kept) : value, target);
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
