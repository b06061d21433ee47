// Lists in formulas: of tensors, of ints, mapped and folded, and who owns their elements.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "record/evaluator_fixture.hpp"

namespace backplane::core {
namespace {

using testing::ElementsAre;

TEST_F(Evaluator, ListsOfTensors) {
  ToyRecord op = toy();
  const uint32_t x = op.node(BP_NODE_ARG);
  const uint32_t none = op.constant({});
  const uint32_t parts = op.call("t::split", {x});  // 2, 3, 4
  const uint32_t last = op.builtin("getslice", {parts, op.constant(int_value(1)), none});
  const uint32_t joined = op.builtin("concat", {last, op.node(BP_NODE_LIST, {x, none})});
  op.formula(BP_RULE_DECOMPOSE, {}, {op.call("t::total", {joined})});
  const bp_value result = run_one(op, vjp());
  EXPECT_EQ(get(result), 3 + 4 + 2);
  drop(result);
  ToyRecord empty = toy();
  empty.formula(BP_RULE_DECOMPOSE, {}, {empty.call("t::total", {empty.node(BP_NODE_LIST)})});
  drop(run_one(empty, vjp()));
  ToyRecord absent = toy();
  const uint32_t nothing = absent.constant({});
  absent.formula(BP_RULE_DECOMPOSE, {}, {absent.call("t::total", {absent.node(BP_NODE_LIST, {nothing, nothing})})});
  drop(run_one(absent, vjp()));
}

TEST_F(Evaluator, MapAndFold) {
  ToyRecord op = toy();
  const uint32_t x = op.node(BP_NODE_ARG);
  const uint32_t parts = op.call("t::split", {x});  // 2, 3, 4
  const uint32_t element = op.node(BP_NODE_VAR, {}, 0);
  const uint32_t squares = op.node(BP_NODE_MAP, {parts, op.call("t::mul", {element, element})}, 0);
  const uint32_t sum = op.node(BP_NODE_VAR, {}, 1), next = op.node(BP_NODE_VAR, {}, 2);
  const uint32_t body = op.call("t::add", {op.call("t::mul", {sum, x}), next});
  op.formula(BP_RULE_DECOMPOSE, {}, {op.node(BP_NODE_FOLD, {squares, x, body}, 1)});
  const bp_value result = run_one(op, vjp());
  EXPECT_EQ(get(result), ((2 * 2 + 4) * 2 + 9) * 2 + 16);
  drop(result);
}

TEST_F(Evaluator, MapsOverIntsAndNests) {
  ToyRecord op = toy();
  const uint32_t x = op.node(BP_NODE_ARG);
  const uint32_t i = op.node(BP_NODE_VAR, {}, 0), j = op.node(BP_NODE_VAR, {}, 1);
  const uint32_t ints = op.node(BP_NODE_SHAPE, {x});  // 2, 3
  const uint32_t row = op.builtin("prod", {op.node(BP_NODE_MAP, {ints, op.builtin("add", {i, j})}, 1)});
  const uint32_t total = op.builtin("prod", {op.node(BP_NODE_MAP, {ints, row}, 0)});
  op.formula(BP_RULE_DECOMPOSE, {}, {op.call("t::mul", {x, total})});
  const bp_value result = run_one(op, vjp());
  EXPECT_EQ(get(result), 2.0 * (2 + 2) * (2 + 3) * (3 + 2) * (3 + 3));
  drop(result);
}

TEST_F(Evaluator, ABodyThatIsAnInputOrConstantKeepsItsOwner) {
  ToyRecord op = toy();
  const uint32_t x = op.node(BP_NODE_ARG);
  const uint32_t made = op.call("t::mul", {x, x});
  const uint32_t parts = op.call("t::split", {x});
  const uint32_t constant = op.node(BP_NODE_MAP, {parts, made}, 0);
  const uint32_t same = op.node(BP_NODE_MAP, {parts, op.node(BP_NODE_VAR, {}, 1)}, 1);
  const uint32_t kept = op.node(BP_NODE_FOLD, {parts, made, op.node(BP_NODE_VAR, {}, 2)}, 2);
  op.formula(
      BP_RULE_DECOMPOSE, {},
      {op.call("t::add", {op.call("t::add", {op.call("t::total", {constant}), op.call("t::total", {same})}), kept})});
  const bp_value result = run_one(op, vjp());
  EXPECT_EQ(get(result), 12 + 9 + 4);
  drop(result);
}

TEST_F(Evaluator, AListOfCotangentsFitsElementByElement) {
  ToyRecord op("t::concat");
  op.arg("xs", BP_TYPE_TENSOR, BP_ARG_LIST);
  op.result("out", "concat", {0});
  const uint32_t parts = op.call("t::split", {op.node(BP_NODE_COTANGENT)});
  op.formula(BP_RULE_VJP, {0}, {op.node(BP_NODE_FIT, {parts}, 0)});
  Number a({}, 0, BP_FLOAT32), b({1}, 0, BP_FLOAT32), c({}, 0, BP_FLOAT64);
  const std::vector<bp_tensor*> xs = {&a.toy.handle, &b.toy.handle, &c.toy.handle};
  args_[0] = tensors_value(xs);
  const bp_value result = run_one(op, vjp());
  ASSERT_EQ(result.tag, BP_TAG_TENSOR_LIST);
  EXPECT_EQ(result.u.tensors[1]->dl.ndim, 1);
  EXPECT_EQ(result.u.tensors[2]->dtype, BP_FLOAT64);
  EXPECT_THAT(calls_, ElementsAre("split", "sum_to", "cast"));
  drop(result);
}

}  // namespace
}  // namespace backplane::core
