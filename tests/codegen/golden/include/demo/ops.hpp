// C++ functions of the ops of namespace demo. Made by backplane-codegen from golden.yaml; edit that instead.
//
// Each throws backplane::Error. A Tensor argument takes a number too; `name_` works in place, `name_out` writes into a
// tensor that is given. Only declarations over backplane/operand.hpp: link libbackplane.
#pragma once

#include "backplane/operand.hpp"

namespace demo {

// Scales two tensors and adds them.
//   axpby(Tensor x, Tensor y, *, Scalar alpha=1, Scalar beta=1) -> Tensor
inline backplane::Tensor axpby(backplane::Operand x, backplane::Operand y, backplane::Scalar alpha = 1, backplane::Scalar beta = 1) {
  static const backplane::OpHandle op = backplane::detail::op_named("demo::axpby");
  const bp_value args[] = {backplane::detail::borrow(x), backplane::detail::borrow(y), backplane::detail::borrow(alpha), backplane::detail::borrow(beta)};
  return backplane::detail::call_result(op, args);
}
inline const backplane::Tensor& axpby_(const backplane::Tensor& x, backplane::Operand y, backplane::Scalar alpha = 1, backplane::Scalar beta = 1) {
  static const backplane::OpHandle op = backplane::detail::op_named("demo::axpby");
  const bp_value args[] = {backplane::value(x), backplane::detail::borrow(y), backplane::detail::borrow(alpha), backplane::detail::borrow(beta)};
  backplane::detail::call_in_place(op, args);
  return x;
}
inline void axpby_out(const backplane::Tensor& out, backplane::Operand x, backplane::Operand y, backplane::Scalar alpha = 1, backplane::Scalar beta = 1) {
  static const backplane::OpHandle op = backplane::detail::op_named("demo::axpby");
  const bp_value args[] = {backplane::detail::borrow(x), backplane::detail::borrow(y), backplane::detail::borrow(alpha), backplane::detail::borrow(beta)};
  bp_value outs[] = {backplane::detail::given(out)};
  backplane::detail::call_results(op, args, outs, 1);
}

// x * x * x.
//   cube(Tensor x) -> Tensor
inline backplane::Tensor cube(backplane::Operand x) {
  static const backplane::OpHandle op = backplane::detail::op_named("demo::cube");
  const bp_value args[] = {backplane::detail::borrow(x)};
  return backplane::detail::call_result(op, args);
}

// A host op with several results and every sort of argument.
//   window(Tensor x, Axis axis=-1, Index?[] starts=[0, 1], *, Dtype? dtype=none, str mode='same') -> (Tensor values, Tensor count)
struct window_results {
  backplane::Tensor values;
  backplane::Tensor count;
};
inline window_results window(backplane::Operand x, int64_t axis = -1, backplane::Positions starts = {0, 1}, std::optional<backplane::Dtype> dtype = {}, std::string_view mode = "same") {
  static const backplane::OpHandle op = backplane::detail::op_named("demo::window");
  const bp_value args[] = {backplane::detail::borrow(x), backplane::detail::borrow(axis), backplane::detail::borrow(starts), backplane::detail::borrow(dtype), backplane::detail::borrow(mode)};
  bp_value outs[2] = {};
  backplane::detail::call_results(op, args, outs, 2);
  return {backplane::Tensor::adopt(outs[0].u.t), backplane::Tensor::adopt(outs[1].u.t)};
}

// Random bits.
//   noise(Shape shape, Generator generator) -> Tensor
inline backplane::Tensor noise(backplane::Ints shape, bp_generator_state& generator) {
  static const backplane::OpHandle op = backplane::detail::op_named("demo::noise");
  bp_value args[] = {backplane::detail::borrow(shape), backplane::detail::borrow(generator)};
  const backplane::detail::Drawn drawn_generator(&generator, op, args);
  return backplane::detail::call_result(op, args);
}

// A view with its axes in another order.
//   turn(Tensor x, Axes axes) -> Tensor
inline backplane::Tensor turn(backplane::Operand x, backplane::Ints axes) {
  static const backplane::OpHandle op = backplane::detail::op_named("demo::turn");
  const bp_value args[] = {backplane::detail::borrow(x), backplane::detail::borrow(axes)};
  return backplane::detail::call_result(op, args);
}

}  // namespace demo
