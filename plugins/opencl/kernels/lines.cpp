// Kernels along axes of contiguous tensors: an item per line, or per element of a matrix.
#include "kernels/launch.hpp"

namespace opencl {
namespace {

std::string join_defines(const char* name, const std::string& op, bp_dtype dtype) {
  return std::string("#define ") + name + "(a, b) bp_" + op + "_" + scalar_name(dtype) + "(a, b)\n";
}
std::string zero_of(const char* type, bp_dtype dtype) {
  const bool complex = (BP_DTYPE_BIT(dtype) & BP_MASK_COMPLEX) != 0;
  return std::string("#define START (") + type + ")" + (complex ? "(0, 0)" : "0") + "\n";
}

void arg_reduce(Context call, ConstTensor<void> x, std::optional<int64_t> axis, bool, MutTensor<void> out) {
  const int64_t flat[] = {x.size()};
  const Lines lines = axis ? Lines(x.shape(), static_cast<size_t>(*axis)) : Lines(flat, 0);
  BP_CHECK(out.size() == 0 || lines.length > 0, VALUE, call.op_name(),
           ": found no elements to choose from; expected at least one along the axis");
  Launch(call, "arg_extreme",
         defines_for("X", x.dtype()) + join_defines("JOIN", call.registered<const char>(), x.dtype()))
      .tensor(*out.handle())
      .tensor(*x.handle())
      .value(lines.length)
      .value(lines.inner)
      .run(out.size());
}

void cumsum(Context call, ConstTensor<void> x, int64_t axis, bp_value, MutTensor<void> out) {
  if (out.size() == 0) return;
  const Lines lines(x.shape(), static_cast<size_t>(axis));
  Launch(call, "running_sum",
         defines_for("OUT", out.dtype()) + defines_for("X", x.dtype()) + join_defines("JOIN", "add", out.dtype()) +
             zero_of("OUT_S", out.dtype()) + "#define CAST(a) bp_cast_" + scalar_name(x.dtype()) + "_" +
             scalar_name(out.dtype()) + "(a)\n")
      .tensor(*out.handle())
      .tensor(*x.handle())
      .value(lines.length)
      .value(lines.inner)
      .run(lines.outer * lines.inner);
}

void argsort(Context call, ConstTensor<void> x, int64_t axis, bool descending, bool, MutTensor<void> out) {
  if (out.size() == 0) return;
  const Lines lines(x.shape(), static_cast<size_t>(axis));
  Launch(call, "sort_line", defines_for("X", x.dtype()))
      .tensor(*out.handle())
      .tensor(*x.handle())
      .value(lines.length)
      .value(lines.inner)
      .value(descending ? 1 : 0)
      .memory(call.scratch(out.handle()->nbytes))
      .run(lines.outer * lines.inner);
}

// A vector on the left is a row, on the right a column; neither axis is in the result.
void matmul(Context call, ConstTensor<void> x, ConstTensor<void> y, MutTensor<void> out) {
  if (out.size() == 0) return;
  const bool row = x.ndim() == 1, column = y.ndim() == 1;
  const int64_t depth = x.shape().back(), rows = row ? 1 : x.shape(x.ndim() - 2),
                columns = column ? 1 : y.shape().back();
  const size_t rank = static_cast<size_t>(out.ndim() - !row - !column);
  const auto stack = [&](const ConstTensor<void>& operand) {
    const size_t own = operand.ndim() < 2 ? 0 : static_cast<size_t>(operand.ndim() - 2);
    return broadcast_strides(operand.shape().first(own), operand.strides().first(own), rank);
  };
  BP_CHECK(rank <= size_t{kMaxDims}, NOT_IMPLEMENTED, call.op_name(), ": found ", rank,
           " axes of stacks, expected at most ", kMaxDims, " on this device");
  const std::vector<int64_t> x_strides = stack(x), y_strides = stack(y);
  const int64_t item = kItemSize[out.dtype()];
  Loop loop;
  loop.rank = static_cast<int64_t>(rank);
  for (size_t d = 0; d < rank; ++d) {
    loop.sizes[d] = out.shape()[d];
    loop.strides[0][d] = out.strides()[d] * item;
    loop.strides[1][d] = x_strides[d] * item;
    loop.strides[2][d] = y_strides[d] * item;
  }
  Launch(call, "product",
         defines_for("X", out.dtype()) + zero_of("X_S", out.dtype()) + join_defines("ADD", "add", out.dtype()) +
             join_defines("MULTIPLY", "multiply", out.dtype()))
      .tensor(*out.handle())
      .tensor(*x.handle())
      .tensor(*y.handle())
      .value(rows)
      .value(depth)
      .value(columns)
      .bytes(loop)
      .run(out.size());
}

}  // namespace

void register_lines(const Registrar& registrar) {
  constexpr bp_dtype_mask kOrdered = BP_MASK_BOOL | BP_MASK_INTEGER | BP_MASK_FLOATING;
  const auto row = [&](const char* op, bp_kernel_fn fn, bp_dtype_mask dtypes, const char* join = nullptr) {
    registrar.kernel(BP_KERNEL(op, kName, fn, .dtypes = dtypes, .context = const_cast<char*>(join)));
  };
  row("bp::argmax", kernel<arg_reduce>, kOrdered, "maximum");
  row("bp::argmin", kernel<arg_reduce>, kOrdered, "minimum");
  row("bp::cumsum", kernel<cumsum>, BP_MASK_ANY);
  row("bp::argsort", kernel<argsort>, kOrdered);
  row("bp::matmul", kernel<matmul>, BP_MASK_ANY & ~BP_MASK_BOOL);
}

}  // namespace opencl
