// Kernels along axes of contiguous tensors: an item per line, or per element of a product.
#include <bit>

#include "kernels/kernels.hpp"
#include "kernels/launch.hpp"

namespace minimal {
namespace {

template <bool kLargest>
void arg_extreme(Context call, ConstTensor<void> x, std::optional<int64_t> axis, bool, MutTensor<void> out) {
  const int64_t flat[] = {x.size()};
  const Lines lines = axis ? Lines(x.shape(), static_cast<size_t>(*axis)) : Lines(flat, 0);
  BP_CHECK(out.size() == 0 || lines.length > 0, VALUE, call.op_name(),
           ": found no elements to choose from; expected at least one along the axis");
  Launch(call, Kernel::arg_extreme, x.dtype())
      .function(kLargest ? "maximum" : "minimum")
      .tensor(*out.handle())
      .tensor(*x.handle())
      .number(lines.length)
      .number(lines.inner)
      .run_parts(out.size(), lines.length);
}

// The elements of a contiguous tensor in the dtype, in scratch memory where they have another one.
const void* elements_in(Context call, const ConstTensor<void>& x, bp_dtype dtype) {
  const char* from = static_cast<const char*>(x.handle()->dl.data) + x.handle()->dl.byte_offset;
  if (x.dtype() == dtype) return from;
  Walk flat;
  flat.add_dim(x.size(), {0, kItemSize[x.dtype()]});
  return record_cast(call, flat, from, x.dtype(), dtype);
}

// Where a kernel that goes on from its own results writes: half floats would be rounded at each part, so those are made
// in float32, and are rounded once by `finish`.
struct WideResult {
  WideResult(Context call, const MutTensor<void>& out)
      : call(call), out(*out.handle()), dtype(computed(out.dtype())), count(out.size()) {
    is_scratch = dtype != out.dtype();
    memory = is_scratch ? call.scratch(static_cast<uint64_t>(count) * kItemSize[dtype])
                        : static_cast<char*>(this->out.dl.data) + this->out.dl.byte_offset;
  }
  void finish() const {
    if (!is_scratch) return;
    Walk flat;
    flat.add_dim(count, {kItemSize[out.dtype], kItemSize[dtype]});
    Launch(call, Kernel::convert, dtype).result(out.dtype).tensor(out).memory(memory).run(flat);
  }

  Context call;
  const bp_tensor& out;
  bp_dtype dtype;
  int64_t count;
  bool is_scratch;
  void* memory;
};

void cumsum(Context call, ConstTensor<void> x, int64_t axis, bp_value, MutTensor<void> out) {
  if (out.size() == 0) return;
  const Lines lines(x.shape(), static_cast<size_t>(axis));
  const WideResult wide(call, out);
  Launch(call, Kernel::running, wide.dtype)
      .function("add")
      .memory(wide.memory)
      .memory(elements_in(call, x, wide.dtype))
      .number(lines.length)
      .number(lines.inner)
      .run_parts(lines.outer * lines.inner, lines.length);
  wide.finish();
}

// A pass per doubling of the sorted runs, from one memory into the other; the last one writes the result.
void argsort(Context call, ConstTensor<void> x, int64_t axis, bool descending, bool, MutTensor<void> out) {
  if (out.size() == 0) return;
  const Lines lines(x.shape(), static_cast<size_t>(axis));
  const void* result = static_cast<const char*>(out.handle()->dl.data) + out.handle()->dl.byte_offset;
  if (lines.length == 1) return Launch(call, Kernel::fill, BP_INT64).memory(result).run(out.size());
  const void *to = result, *from = call.scratch(out.handle()->nbytes);
  const auto passes = std::bit_width(static_cast<uint64_t>(lines.length - 1));
  if (passes % 2 == 0) std::swap(from, to);
  for (int64_t width = 1; width < lines.length; width *= 2, std::swap(from, to))
    Launch(call, Kernel::merge, x.dtype())
        .memory(to)
        .tensor(*x.handle())
        .memory(from)
        .number(lines.length)
        .number(lines.inner)
        .number(descending ? 1 : 0)
        .number(width)
        .run(out.size());
}

// A vector on the left is a row, on the right a column; neither axis is in the result.
void matmul(Context call, ConstTensor<void> x, ConstTensor<void> y, MutTensor<void> out) {
  if (out.size() == 0) return;
  const bool row = x.ndim() == 1, column = y.ndim() == 1;
  const size_t rank = static_cast<size_t>(out.ndim() - !row - !column);
  const auto stack = [&](const ConstTensor<void>& operand) {
    const size_t own = operand.ndim() < 2 ? 0 : static_cast<size_t>(operand.ndim() - 2);
    return broadcast_strides(operand.shape().first(own), operand.strides().first(own), rank);
  };
  const WideResult wide(call, out);
  const int64_t depth = x.shape().back();
  Launch product(call, Kernel::product, wide.dtype);
  product.function("multiply", "add")
      .memory(wide.memory)
      .memory(elements_in(call, x, wide.dtype))
      .memory(elements_in(call, y, wide.dtype))
      .number(row ? 1 : x.shape(x.ndim() - 2))
      .number(depth)
      .number(column ? 1 : y.shape().back())
      .loop(Walk(out.shape().first(rank), {out.strides().first(rank), stack(x), stack(y)}, kItemSize[wide.dtype]));
  if (depth == 0)  // sums of nothing
    product.number(0).number(0).run(out.size());
  else
    product.run_parts(out.size(), depth);
  wide.finish();
}

}  // namespace

void register_lines(const Registrar& registrar) {
  constexpr bp_dtype_mask kOrdered = BP_MASK_BOOL | BP_MASK_INTEGER | BP_MASK_FLOATING;
  const auto row = [&](const char* op, bp_kernel_fn fn, bp_dtype_mask dtypes) {
    registrar.kernel(BP_KERNEL(op, kName, fn, .dtypes = dtypes));
  };
  row("bp::argmax", kernel<arg_extreme<true>>, kOrdered);
  row("bp::argmin", kernel<arg_extreme<false>>, kOrdered);
  row("bp::cumsum", kernel<cumsum>, BP_MASK_ANY);
  row("bp::argsort", kernel<argsort>, kOrdered);
  row("bp::matmul", kernel<matmul>, BP_MASK_ANY & ~BP_MASK_BOOL);
}

}  // namespace minimal
