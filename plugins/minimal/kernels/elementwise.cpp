// Elementwise kernels: loops over the scalar functions that codegen makes of the registry.
#include "kernels.hpp"

namespace minimal {
namespace {

namespace scalar = backplane::scalar;

constexpr uint32_t kFlags = BP_KERNEL_LOOP | BP_KERNEL_IMMEDIATES | BP_KERNEL_INPLACE;

// Integers for which there is no value are the kernel's to refuse; the scalar functions give some number.
template <class Op, class T>
void check_second(const Context& call, T y) {
  if constexpr (std::is_integral_v<T> &&
                (std::is_same_v<Op, scalar::floor_divide> || std::is_same_v<Op, scalar::remainder>))
    BP_CHECK(y != 0, DATA, call.op_name(), ": an integer divisor is 0; expected every divisor to differ from 0");
  if constexpr (std::is_integral_v<T> && std::is_same_v<Op, scalar::pow>)
    BP_CHECK(y >= 0, DATA, call.op_name(), ": an integer exponent is ", +y,
             "; expected 0 or more, or a floating dtype");
}

template <class Op>
void unary(Context call, bp_value x, MutTensor<void> out) {
  dispatch_dtype<accepted<Op, 1>>(call.compute(), [&]<class T>() {
    map_elements<ResultOf<Op, T, 1>, T>(Loop<2>(call, out, x), [](T a) { return apply<Op>(a); });
  });
}

template <class Op>
void binary(Context call, bp_value x, bp_value y, MutTensor<void> out) {
  dispatch_dtype<accepted<Op, 2>>(call.compute(), [&]<class T>() {
    map_elements<ResultOf<Op, T, 2>, T, T>(Loop<3>(call, out, x, y), [&call](T a, T b) {
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

}  // namespace

#define UNARY(X)                                                                                                 \
  X(negative)                                                                                                    \
  X(abs) X(sign) X(conj) X(bitwise_invert) X(sqrt) X(exp) X(expm1) X(log) X(log1p) X(sin) X(cos) X(atan) X(tanh) \
      X(erf) X(floor) X(ceil) X(trunc) X(round)
#define BINARY(X)                                                                                                     \
  X(add)                                                                                                              \
  X(subtract) X(multiply) X(divide) X(floor_divide) X(remainder) X(pow) X(maximum) X(minimum) X(atan2) X(bitwise_and) \
      X(bitwise_or) X(bitwise_xor) X(bitwise_left_shift) X(bitwise_right_shift) X(equal) X(not_equal) X(less)         \
          X(less_equal) X(greater) X(greater_equal) X(complex_from)

void register_elementwise(const Registrar& registrar) {
  const auto row = [&](const char* op, bp_kernel_fn fn, bp_dtype_mask dtypes) {
    registrar.kernel(BP_KERNEL(op, kName, fn, .dtypes = dtypes, .flags = kFlags));
  };
#define UNARY_ROW(op) row("bp::" #op, kernel<unary<scalar::op>>, accepted<scalar::op, 1>);
#define BINARY_ROW(op) row("bp::" #op, kernel<binary<scalar::op>>, accepted<scalar::op, 2>);
  UNARY(UNARY_ROW)
  BINARY(BINARY_ROW)
  row("bp::where", kernel<where>, BP_MASK_ANY);
}

}  // namespace minimal
