// Elementwise kernels: the scalar functions of the registry, in loops of any strides.
#include "kernels/kernels.hpp"
#include "kernels/launch.hpp"

namespace minimal {
namespace {

namespace scalar = backplane::scalar;

constexpr uint32_t kFlags = BP_KERNEL_LOOP | BP_KERNEL_INPLACE;

const char* name_of(Context call) { return call.op_name() + std::strlen("bp::"); }

void unary(Context call, ConstTensor<void> x, MutTensor<void> out) {
  Launch(call, out.dtype() == x.dtype() ? Kernel::unary : Kernel::real_of, x.dtype())
      .result(out.dtype())
      .function(name_of(call))
      .tensor(*out.handle())
      .tensor(*x.handle())
      .run(Walk(call, {out.handle(), x.handle()}));
}

template <unsigned kFaults>
void binary(Context call, ConstTensor<void> x, ConstTensor<void> y, MutTensor<void> out) {
  const std::string op = call.op_name();
  const bool whole = (BP_DTYPE_BIT(x.dtype()) & BP_MASK_INTEGER) != 0;
  const bool divides = whole && (kFaults & BP_FAULT_DIVISION), raises = whole && (kFaults & BP_FAULT_EXPONENT);
  Launch launch(call,
                out.dtype() == x.dtype() ? Kernel::binary
                : out.dtype() == BP_BOOL ? Kernel::compare
                                         : Kernel::complex_of,
                x.dtype());
  // The kernel refuses integers without a defined result; the scalar functions would give some number.
  launch.number(divides ? 1 : raises ? 2 : 0);
  if (divides) launch.watch(op + ": an integer divisor is 0; expected every divisor to differ from 0");
  if (raises) launch.watch(op + ": an integer exponent is below 0; expected 0 or more, or a floating dtype");
  launch.result(out.dtype())
      .function(name_of(call))
      .tensor(*out.handle())
      .tensor(*x.handle())
      .tensor(*y.handle())
      .run(Walk(call, {out.handle(), x.handle(), y.handle()}));
}

void where(Context call, ConstTensor<void> condition, ConstTensor<void> x, ConstTensor<void> y, MutTensor<void> out) {
  Launch(call, Kernel::choose, out.dtype())
      .tensor(*out.handle())
      .tensor(*condition.handle())
      .tensor(*x.handle())
      .tensor(*y.handle())
      .run(Walk(call, {out.handle(), condition.handle(), x.handle(), y.handle()}));
}

void cast(Context call, ConstTensor<void> x, bp_dtype, MutTensor<void> out) {
  Launch(call, Kernel::convert, x.dtype())
      .result(out.dtype())
      .tensor(*out.handle())
      .tensor(*x.handle())
      .run(Walk(call, {out.handle(), x.handle()}));
}

struct Row {
  const char* op;
  bp_kernel_fn fn;
  bp_dtype_mask dtypes;
};
// A line for each would be a page:
// clang-format off
#define UNARY(name) {"bp::" #name, kernel<unary>, accepted<scalar::name, 1>}
#define BINARY(name) {"bp::" #name, kernel<binary<scalar::name::kFaults>>, accepted<scalar::name, 2>}
constexpr Row kRows[] = {
    UNARY(negative), UNARY(abs), UNARY(sign), UNARY(conj), UNARY(bitwise_invert), UNARY(sqrt), UNARY(exp),
    UNARY(expm1), UNARY(log), UNARY(log1p), UNARY(sin), UNARY(cos), UNARY(atan), UNARY(tanh), UNARY(erf),
    UNARY(floor), UNARY(ceil), UNARY(trunc), UNARY(round),
    BINARY(add), BINARY(subtract), BINARY(multiply), BINARY(divide), BINARY(floor_divide), BINARY(remainder),
    BINARY(pow), BINARY(maximum), BINARY(minimum), BINARY(atan2), BINARY(bitwise_and), BINARY(bitwise_or),
    BINARY(bitwise_xor), BINARY(bitwise_left_shift), BINARY(bitwise_right_shift), BINARY(equal),
    BINARY(not_equal), BINARY(less), BINARY(less_equal), BINARY(greater), BINARY(greater_equal),
    BINARY(complex_from),
};
#undef UNARY
#undef BINARY
// clang-format on

}  // namespace

void register_elementwise(const Registrar& registrar) {
  for (const Row& row : kRows)
    registrar.kernel(BP_KERNEL(row.op, kName, row.fn, .dtypes = row.dtypes, .flags = kFlags));
  registrar.kernel(BP_KERNEL("bp::where", kName, kernel<where>, .flags = kFlags));
  registrar.kernel(BP_KERNEL("bp::cast", kName, kernel<cast>, .flags = BP_KERNEL_LOOP));
}

}  // namespace minimal
