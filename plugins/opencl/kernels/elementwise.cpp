// Elementwise kernels: the scalar functions of the registry in OpenCL C, in loops of any strides.
#include "kernels/launch.hpp"

namespace opencl {
namespace {

namespace scalar = backplane::scalar;

constexpr uint32_t kFlags = BP_KERNEL_LOOP | BP_KERNEL_INPLACE;

std::string function_of(Context call) {  // bp::exp in float32: bp_exp_float32
  return std::string("bp_") + (call.op_name() + std::strlen("bp::")) + "_" + scalar_name(call.compute());
}

void unary(Context call, ConstTensor<void> x, MutTensor<void> out) {
  const bp_dtype dtypes[] = {out.dtype(), x.dtype()};
  Launch(call, "unary",
         defines_for("OUT", out.dtype()) + defines_for("X", x.dtype()) + "#define FUNCTION(a) " + function_of(call) +
             "(a)\n")
      .tensor(*out.handle())
      .tensor(*x.handle())
      .run(Walk(call, *out.handle(), 2, dtypes));
}

void binary(Context call, ConstTensor<void> x, ConstTensor<void> y, MutTensor<void> out) {
  const bp_dtype dtypes[] = {out.dtype(), x.dtype(), y.dtype()};
  const std::string op = call.op_name();
  const bool whole = (BP_DTYPE_BIT(x.dtype()) & BP_MASK_INTEGER) != 0;
  const bool divides = whole && (op == "bp::floor_divide" || op == "bp::remainder"), raises = whole && op == "bp::pow";
  Launch launch(call, divides || raises ? "checked_binary" : "binary",
                defines_for("OUT", out.dtype()) + defines_for("X", x.dtype()) + "#define FUNCTION(a, b) " +
                    function_of(call) + "(a, b)\n#define REFUSED(b) ((b) " + (divides ? "==" : "<") + " 0)\n");
  if (divides) launch.watch(op + ": an integer divisor is 0; expected every divisor to differ from 0");
  if (raises) launch.watch(op + ": an integer exponent is below 0; expected 0 or more, or a floating dtype");
  launch.tensor(*out.handle()).tensor(*x.handle()).tensor(*y.handle()).run(Walk(call, *out.handle(), 3, dtypes));
}

void where(Context call, ConstTensor<void> condition, ConstTensor<void> x, ConstTensor<void> y, MutTensor<void> out) {
  const bp_dtype dtypes[] = {out.dtype(), BP_BOOL, out.dtype(), out.dtype()};
  Launch(call, "choose", width_defines("OUT", out.dtype()))
      .tensor(*out.handle())
      .tensor(*condition.handle())
      .tensor(*x.handle())
      .tensor(*y.handle())
      .run(Walk(call, *out.handle(), 4, dtypes));
}

void cast(Context call, ConstTensor<void> x, bp_dtype, MutTensor<void> out) {
  const bp_dtype dtypes[] = {out.dtype(), x.dtype()};
  Launch(call, "unary",
         defines_for("OUT", out.dtype()) + defines_for("X", x.dtype()) + "#define FUNCTION(a) bp_cast_" +
             scalar_name(x.dtype()) + "_" + scalar_name(out.dtype()) + "(a)\n")
      .tensor(*out.handle())
      .tensor(*x.handle())
      .run(Walk(call, *out.handle(), 2, dtypes));
}

}  // namespace

#define UNARY(X)                                                                                                 \
  X(negative)                                                                                                    \
  X(abs)                                                                                                         \
  X(sign) X(conj) X(bitwise_invert) X(sqrt) X(exp) X(expm1) X(log) X(log1p) X(sin) X(cos) X(atan) X(tanh) X(erf) \
      X(floor) X(ceil) X(trunc) X(round)
#define BINARY(X)                                                                                             \
  X(add)                                                                                                      \
  X(subtract)                                                                                                 \
  X(multiply) X(divide) X(floor_divide) X(remainder) X(pow) X(maximum) X(minimum) X(atan2) X(bitwise_and)     \
      X(bitwise_or) X(bitwise_xor) X(bitwise_left_shift) X(bitwise_right_shift) X(equal) X(not_equal) X(less) \
          X(less_equal) X(greater) X(greater_equal) X(complex_from)

void register_elementwise(const Registrar& registrar) {
  const auto row = [&](const char* op, bp_kernel_fn fn, bp_dtype_mask dtypes, uint32_t flags = kFlags) {
    registrar.kernel(BP_KERNEL(op, kName, fn, .dtypes = dtypes, .flags = flags));
  };
#define UNARY_ROW(op) row("bp::" #op, kernel<unary>, accepted<scalar::op, 1>);
#define BINARY_ROW(op) row("bp::" #op, kernel<binary>, accepted<scalar::op, 2>);
  UNARY(UNARY_ROW)
  BINARY(BINARY_ROW)
  row("bp::where", kernel<where>, BP_MASK_ANY);
  row("bp::cast", kernel<cast>, BP_MASK_ANY, BP_KERNEL_LOOP);
}

}  // namespace opencl
