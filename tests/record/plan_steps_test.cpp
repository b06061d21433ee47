// Plans with branches run in steps that were found beforehand: each node at most once, and only where it is needed.
#include "record/plan_steps.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "record/evaluator_fixture.hpp"

namespace backplane::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class PlanSteps : public Evaluator {
 protected:
  const FormulaPlan& plan() const { return op_->plan(op_->formulas.back()); }
  static int count(const char* name) { return static_cast<int>(std::count(calls_.begin(), calls_.end(), name)); }
};

TEST_F(PlanSteps, WhatABranchAndItsSequelShareIsComputedOnce) {
  for (bool take : {true, false}) {
    calls_.clear();
    ToyRecord op = toy();
    const uint32_t x = op.node(BP_NODE_ARG, {}, 0);
    const uint32_t square = op.call("t::mul", {x, x});
    const uint32_t chosen = op.node(BP_NODE_IF, {op.constant(bool_value(take)), square, x});
    op.formula(BP_RULE_DECOMPOSE, {}, {op.call("t::add", {chosen, square})});
    const bp_value result = run_one(op, vjp());
    EXPECT_EQ(plan().steps.size(), 1u);
    EXPECT_EQ(get(result), take ? 8 : 6);
    EXPECT_EQ(count("mul"), 1);
    drop(result);
  }
}

TEST_F(PlanSteps, BranchesWithinBranches) {
  for (int which = 0; which < 4; ++which) {
    calls_.clear();
    ToyRecord op = toy();
    const uint32_t x = op.node(BP_NODE_ARG, {}, 0);
    const uint32_t outer = op.constant(bool_value(which & 1)), inner = op.constant(bool_value(which & 2));
    const uint32_t sum = op.call("t::add", {x, x}), fail = op.call("t::fail", {sum});
    const uint32_t good = op.node(BP_NODE_IF, {inner, op.call("t::mul", {sum, sum}), sum});
    const uint32_t root =
        op.node(BP_NODE_IF, {outer, op.node(BP_NODE_IF, {outer, good, fail}), op.call("t::add", {sum, x})});
    op.formula(BP_RULE_DECOMPOSE, {}, {root});
    const bp_value result = run_one(op, vjp());
    EXPECT_EQ(plan().steps.size(), 1u);
    EXPECT_EQ(get(result), which & 1 ? (which & 2 ? 16 : 4) : 6);
    EXPECT_EQ(count("add"), which & 1 ? 1 : 2);
    drop(result);
  }
}

TEST_F(PlanSteps, AFailureInABranchReleasesEverything) {
  ToyRecord op = toy();
  const uint32_t x = op.node(BP_NODE_ARG, {}, 0);
  const uint32_t square = op.call("t::mul", {x, x});
  const uint32_t fails = op.call("t::fail", {op.call("t::add", {square, x})});
  op.formula(BP_RULE_DECOMPOSE, {}, {op.node(BP_NODE_IF, {op.constant(bool_value(true)), fails, square})});
  EXPECT_THAT(error_of([&] { run(op, vjp()); }), HasSubstr("always fails"));
  EXPECT_EQ(live_, 0);
}

// Each IF would double the length of the list. Such a plan has no list, and gives the same result.
TEST_F(PlanSteps, APlanWhoseListsWouldBeLongRunsByDemand) {
  ToyRecord op = toy();
  const uint32_t x = op.node(BP_NODE_ARG, {}, 0);
  uint32_t at = x;
  for (int i = 0; i < 24; ++i) {
    const uint32_t next = op.call("t::add", {at, x});
    const uint32_t no = op.constant(bool_value(false)), yes = op.constant(bool_value(true));
    at = op.node(BP_NODE_IF,
                 {i % 2 ? no : yes, op.node(BP_NODE_IF, {yes, next, x}), op.node(BP_NODE_IF, {no, x, next})});
  }
  op.formula(BP_RULE_DECOMPOSE, {}, {at});
  const bp_value result = run_one(op, vjp());
  EXPECT_TRUE(plan().steps.empty());
  EXPECT_EQ(get(result), 2 + 24 * 2);
  EXPECT_EQ(count("add"), 24);
  drop(result);
}

TEST_F(PlanSteps, AShapeRuleHasAListPerResultThatNeedsNoOther) {
  ToyRecord op = toy();
  op.result("a", "expr", {}).result("b", "expr", {});
  const uint32_t shape = op.node(BP_NODE_SHAPE, {op.node(BP_NODE_ARG)});
  const uint32_t long_one = op.builtin("gt", {op.builtin("len", {shape}), op.constant(int_value(1))});
  const uint32_t first = op.node(BP_NODE_IF, {long_one, shape, op.node(BP_NODE_LIST, {op.constant(int_value(1))})});
  const uint32_t refused = op.builtin(
      "require", {op.constant(int_value(5)), op.constant(bool_value(false)), op.constant(string_value("never"))});
  op.formula(BP_RULE_SHAPE, {}, {first, op.node(BP_NODE_LIST, {refused})});
  op_ = op.record();
  EXPECT_EQ(plan().steps.size(), 2u);
  int64_t sizes[64];
  int32_t ndim = 0;
  FormulaInputs inputs;
  inputs.args = args_;
  evaluate_ints(*op_, op_->formulas[0], 0, inputs, sizes, &ndim);
  EXPECT_THAT(Ints(sizes, sizes + ndim), ElementsAre(2, 3));
  EXPECT_THAT(error_of([&] { evaluate_ints(*op_, op_->formulas[0], 1, inputs, sizes, &ndim); }),
              HasSubstr("expected never"));
}

}  // namespace
}  // namespace backplane::core
