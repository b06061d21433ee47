// Elementwise kernels: loops over the scalar functions that codegen makes of the registry.
#include "kernels.hpp"

namespace minimal {
namespace {

namespace scalar = backplane::scalar;

constexpr uint32_t kFlags = BP_KERNEL_LOOP | BP_KERNEL_IMMEDIATES | BP_KERNEL_INPLACE;

// The kernel refuses integers without a defined result; the scalar functions would give some number.
template <class Op, class T>
void check_second(const Context& call, T y) {
  if constexpr (std::is_integral_v<T> && (Op::kFaults & BP_FAULT_DIVISION))
    BP_CHECK(y != 0, DATA, call.op_name(), ": an integer divisor is 0; expected every divisor to differ from 0");
  if constexpr (std::is_integral_v<T> && (Op::kFaults & BP_FAULT_EXPONENT))
    BP_CHECK(y >= 0, DATA, call.op_name(), ": an integer exponent is ", +y,
             "; expected 0 or more, or a floating dtype");
}

template <class Op>
void unary(Context call, bp_value x, MutTensor<void> out) {
  const Loop<2> loop(call, out, x);
  dispatch_dtype<accepted<Op, 1>>(
      call.compute(), [&]<class T>() { map_elements<ResultOf<Op, T, 1>, T>(loop, [](T a) { return apply<Op>(a); }); });
}

template <class Op>
void binary(Context call, bp_value x, bp_value y, MutTensor<void> out) {
  const Loop<3> loop(call, out, x, y);
  dispatch_dtype<accepted<Op, 2>>(call.compute(), [&]<class T>() {
    map_elements<ResultOf<Op, T, 2>, T, T>(loop, [&call](T a, T b) {
      check_second<Op>(call, b);
      return apply<Op>(a, b);
    });
  });
}

void where(Context call, bp_value condition, bp_value x, bp_value y, MutTensor<void> out) {
  Loop<4> loop(call, out, condition, x, y);
  loop.set_number(1, BP_BOOL, condition);
  dispatch_width(out.dtype(), [&]<class T>() {
    map_elements<T, bool, T, T>(loop, [](bool holds, T a, T b) { return holds ? a : b; });
  });
}

struct Row {
  const char* op;
  bp_kernel_fn fn;
  bp_dtype_mask dtypes;
};
// A line for each would be a page:
// clang-format off
#define UNARY(name) {"bp::" #name, kernel<unary<scalar::name>>, accepted<scalar::name, 1>}
#define BINARY(name) {"bp::" #name, kernel<binary<scalar::name>>, accepted<scalar::name, 2>}
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
// clang-format on

}  // namespace

void register_elementwise(const Registrar& registrar) {
  for (const Row& row : kRows)
    registrar.kernel(BP_KERNEL(row.op, kName, row.fn, .dtypes = row.dtypes, .flags = kFlags));
  registrar.kernel(BP_KERNEL("bp::where", kName, kernel<where>, .flags = kFlags));
}

}  // namespace minimal
