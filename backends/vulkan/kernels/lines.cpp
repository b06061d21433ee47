// Kernels along one axis: argmax, argmin, cumsum, argsort.
#include "kernels/kernels.hpp"

namespace backplane::vulkan {
namespace {

// Lines of a contiguous tensor: the axis of an optional Axis argument, or x flattened where it is absent.
struct Lines {
  int64_t outer = 1, length = 1, inner = 1;
  int64_t count() const { return outer * inner; }
};

Lines lines_along(const Call& call, const Operand& x, size_t axis_arg) {
  if (!call.has(axis_arg) || x.ndim() == 0) return {1, x.count(), 1};
  const auto axis = static_cast<size_t>(call.integer(axis_arg));
  Lines lines{1, x.shape[axis], 1};
  for (size_t d = 0; d < x.shape.size(); ++d) (d < axis ? lines.outer : lines.inner) *= d == axis ? 1 : x.shape[d];
  return lines;
}

void record_lines(const Call& call, Module first, uint8_t function, const Lines& lines, const Operand& x,
                  const Operand& out) {
  const bool alone = lines.count() >= 1024 || lines.length <= 32;  // one invocation per line
  Push push = call.push();
  push.at = {out.data, x.data};
  push.n = {static_cast<uint32_t>(lines.count()), static_cast<uint32_t>(lines.length),
            static_cast<uint32_t>(lines.inner)};
  const Shader shader{
      module_of(first, class_of(x.dtype)),
      {function, static_cast<uint8_t>(x.dtype), static_cast<uint8_t>(out.dtype), static_cast<uint8_t>(alone ? 0 : 1)}};
  const auto groups = static_cast<uint32_t>(std::min<int64_t>(lines.count(), kMaxGroups));
  call.dispatch(shader, push, alone ? groups_for(lines.count()) : groups, {out.range()}, {x.range()});
}

template <uint8_t kFunction>
void arg_extreme(const Call& call) {
  const Operand x = call.input(0), out = call.output(0);
  const Lines lines = lines_along(call, x, 1);
  BP_CHECK(out.count() == 0 || lines.length > 0, VALUE, call.op_name(),
           ": found no elements to choose from; expected at least one along the reduced axes");
  if (out.count() > 0) record_lines(call, Module::arg_reduce_float32, kFunction, lines, x, out);
}

void cumsum(const Call& call) {
  Operand x = call.input(0);
  const Operand out = call.output(0);
  if (out.count() == 0) return;
  const Lines lines = lines_along(call, x, 1);
  if (class_of(x.dtype) != class_of(out.dtype)) {
    const bool half = out.dtype == BP_FLOAT16 || out.dtype == BP_BFLOAT16;
    const Operand converted = call.scratch(half ? bp_dtype{BP_FLOAT32} : out.dtype, x.shape);
    record_cast(call, converted, x);
    x = converted;
  }
  record_lines(call, Module::scan_float32, 0, lines, x, out);
}

void argsort(const Call& call) {
  Operand x = call.input(0), out = call.output(0);
  if (out.count() == 0) return;
  if (x.ndim() == 0) {
    x.shape = out.shape = x.strides = out.strides = {1};
    return record_sort(call, out, x, 0, false);
  }
  record_sort(call, out, x, static_cast<size_t>(call.integer(1)), call.flag(2));
}

constexpr bp_dtype_mask kOrdered = BP_MASK_FLOATING | BP_MASK_INTEGER | BP_MASK_BOOL;
constexpr Row kRows[] = {
    {"bp::argmax", kernel<arg_extreme<0>>, kOrdered, 0},
    {"bp::argmin", kernel<arg_extreme<1>>, kOrdered, 0},
    {"bp::cumsum", kernel<cumsum>, BP_MASK_ANY, 0},
    {"bp::argsort", kernel<argsort>, kOrdered, BP_KERNEL_STRIDED},
};

}  // namespace

void record_sort(const Call& call, const Operand& to, const Operand& x, size_t axis, bool descending) {
  constexpr int64_t kRun = 8;  // as in shaders/sort.comp
  const int64_t length = x.shape[axis], lines = x.count() / length;
  const auto drop = [axis](Sizes sizes) {
    sizes.erase(sizes.begin() + static_cast<ptrdiff_t>(axis));
    return sizes;
  };
  const Sizes shape = drop(x.shape), to_strides = drop(to.strides), x_strides = drop(x.strides);
  Rows rows;
  rows.add(shape, {&to_strides, &x_strides});
  Push push = call.push();
  push.dims = call.stage(rows);
  push.n = {static_cast<uint32_t>(lines),           static_cast<uint32_t>(length),           0,
            static_cast<uint32_t>(x.strides[axis]), static_cast<uint32_t>(to.strides[axis]), rows.rank()};
  const Operand turns[2] = {length > kRun ? call.scratch(BP_INT32, x.shape) : to,
                            length > 2 * kRun ? call.scratch(BP_INT32, x.shape) : to};
  int64_t width = 0;
  for (size_t turn = 0;; turn ^= 1) {
    const int64_t sorted = width ? 2 * width : kRun;  // once this pass has run
    const bool last = sorted >= length;
    const Operand &result = last ? to : turns[turn], &before = turns[turn ^ 1];
    push.at = {result.data, x.data, width ? before.data : 0};
    push.n[2] = static_cast<uint32_t>(width);
    push.n[6] = last ? 1 : 0;
    const Shader shader{module_of(Module::sort_float32, class_of(x.dtype)),
                        {0, static_cast<uint8_t>(x.dtype), static_cast<uint8_t>(result.dtype),
                         static_cast<uint8_t>(descending ? 1 : 0)}};
    const int64_t pieces = width ? length : (length + kRun - 1) / kRun;
    call.dispatch(shader, push, groups_for(lines * pieces), {result.range()},
                  {x.range(), width ? before.range() : Range{}});
    if (last) return;
    width = sorted;
  }
}

void register_lines(const plugin::Registrar& registrar, Backend&) { register_rows(registrar, kRows, __FILE__); }

}  // namespace backplane::vulkan
