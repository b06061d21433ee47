// An op record with every kind of part.
#pragma once

#include "record/toy_record.hpp"

namespace backplane::core {

inline ToyRecord multiply() {
  static constexpr const char* kFitNames[3] = {"t::sum_to", "t::cast", "t::real"};
  ToyRecord toy("t::multiply.test");
  toy.tensors({"x", "y"});
  toy.arg("scale", BP_TYPE_SCALAR, BP_ARG_HAS_DEFAULT, float_value(1));
  toy.arg("axes", BP_TYPE_AXES, BP_ARG_OPTIONAL);
  toy.fit_names = kFitNames;
  toy.flags = BP_OP_ELEMENTWISE | BP_OP_INPLACE;
  const uint32_t x = toy.node(BP_NODE_ARG, {}, 0);
  const uint32_t y = toy.node(BP_NODE_ARG, {}, 1);
  const uint32_t g = toy.node(BP_NODE_COTANGENT);
  const uint32_t for_x = toy.node(BP_NODE_FIT, {toy.call("t::mul", {g, y})}, 0);
  const uint32_t for_y = toy.node(BP_NODE_FIT, {toy.call("t::mul", {g, x})}, 1);
  const uint32_t text = toy.constant(string_value("text"));
  const uint32_t same = toy.builtin("eq", {text, text});
  const uint32_t both = toy.call("t::mul", {x, y});
  const uint32_t out = toy.node(BP_NODE_IF, {same, both, x});
  toy.formula(BP_RULE_VJP, {0}, {for_x}, 0, "mul(g, y)");
  toy.formula(BP_RULE_VJP, {1}, {for_y}, 0, "mul(g, x)");
  toy.formula(BP_RULE_DECOMPOSE, {}, {out}, 0, "x * y");
  return toy;
}

}  // namespace backplane::core
