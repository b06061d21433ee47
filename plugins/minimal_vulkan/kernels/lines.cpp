// Kernels along axes of contiguous tensors: an item per line, or per element of a product.
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
      .run(out.size());
}

void cumsum(Context call, ConstTensor<void> x, int64_t axis, bp_value, MutTensor<void> out) {
  if (out.size() == 0) return;
  const Lines lines(x.shape(), static_cast<size_t>(axis));
  const char* from = static_cast<const char*>(x.handle()->dl.data) + x.handle()->dl.byte_offset;
  if (x.dtype() != out.dtype()) {
    Walk flat;
    flat.add_dim(x.size(), {0, kItemSize[x.dtype()]});
    from = record_cast(call, flat, from, x.dtype(), out.dtype());
  }
  Launch(call, Kernel::running, out.dtype())
      .function("add")
      .tensor(*out.handle())
      .memory(from)
      .number(lines.length)
      .number(lines.inner)
      .run(lines.outer * lines.inner);
}

void argsort(Context call, ConstTensor<void> x, int64_t axis, bool descending, bool, MutTensor<void> out) {
  if (out.size() == 0) return;
  const Lines lines(x.shape(), static_cast<size_t>(axis));
  Launch(call, Kernel::sort_line, x.dtype())
      .tensor(*out.handle())
      .tensor(*x.handle())
      .memory(call.scratch(out.handle()->nbytes))
      .number(lines.length)
      .number(lines.inner)
      .number(descending ? 1 : 0)
      .run(lines.outer * lines.inner);
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
  Launch(call, Kernel::product, out.dtype())
      .function("multiply", "add")
      .tensor(*out.handle())
      .tensor(*x.handle())
      .tensor(*y.handle())
      .number(row ? 1 : x.shape(x.ndim() - 2))
      .number(x.shape().back())
      .number(column ? 1 : y.shape().back())
      .loop(Walk(out.shape().first(rank), {out.strides().first(rank), stack(x), stack(y)}, kItemSize[out.dtype()]))
      .run(out.size());
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
