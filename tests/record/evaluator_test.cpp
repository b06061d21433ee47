// The evaluator over toy tensors: its results, its calls, and that every reference is released, also if
// an op fails half-way.
#include "record/evaluator.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "record/evaluator_fixture.hpp"

namespace backplane::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(Evaluator, AVjpSumsCastsAndTakesRealPartsOnlyWhereNeeded) {
  ToyRecord op = toy();
  const uint32_t x = op.node(BP_NODE_ARG, {}, 0), y = op.node(BP_NODE_ARG, {}, 1), g = op.node(BP_NODE_COTANGENT);
  op.formula(
      BP_RULE_VJP, {0, 1},
      {op.node(BP_NODE_FIT, {op.call("t::mul", {g, y})}, 0), op.node(BP_NODE_FIT, {op.call("t::mul", {g, x})}, 1)});
  auto results = run(op, vjp());
  EXPECT_EQ(get(results[0]), 35);
  EXPECT_EQ(get(results[1]), 14);
  EXPECT_THAT(Ints(results[1].u.t->dl.shape, results[1].u.t->dl.shape + 1), ElementsAre(3));
  EXPECT_THAT(calls_, ElementsAre("mul", "mul", "sum_to"));
  drop(results);
  calls_.clear();
  y_.toy.handle.dtype = BP_FLOAT64;
  g_.toy.handle.dtype = BP_COMPLEX64;
  results = run(op, vjp(0b10));  // x's cotangent is not asked for
  EXPECT_EQ(results[0].tag, BP_TAG_ABSENT);
  EXPECT_EQ(results[1].u.t->dtype, BP_FLOAT64);
  EXPECT_THAT(calls_, ElementsAre("mul", "real", "sum_to", "cast"));
  drop(results);
}

TEST_F(Evaluator, ANodeUsedTwiceIsComputedOnce) {
  ToyRecord op = toy();
  const uint32_t x = op.node(BP_NODE_ARG);
  const uint32_t square = op.call("t::mul", {x, x});
  op.formula(BP_RULE_DECOMPOSE, {}, {op.call("t::add", {square, square})});
  const bp_value result = run_one(op, vjp());
  EXPECT_EQ(get(result), 8);
  EXPECT_THAT(calls_, ElementsAre("mul", "add"));
  drop(result);
}

TEST_F(Evaluator, AResultThatIsAnInputGetsAReferenceOfItsOwn) {
  ToyRecord op = toy();
  const uint32_t g = op.node(BP_NODE_COTANGENT);
  const uint32_t fit = op.node(BP_NODE_FIT, {g}, 0);
  op.formula(BP_RULE_VJP, {0, 1}, {fit, g});
  const auto results = run(op, vjp());
  EXPECT_EQ(results[0].u.t, &g_.toy.handle);
  EXPECT_EQ(g_.references, 3);
  drop(results);
  EXPECT_EQ(g_.references, 1);
}

TEST_F(Evaluator, ASymbolicZeroStaysAbsent) {
  ToyRecord op = toy();
  op.formula(BP_RULE_VJP, {0}, {op.node(BP_NODE_FIT, {op.node(BP_NODE_COTANGENT)}, 0)});
  g_values_[0] = {};
  EXPECT_EQ(run_one(op, vjp()).tag, BP_TAG_ABSENT);
}

TEST_F(Evaluator, OneBranchOfAnIfRuns) {
  for (bool take : {true, false}) {
    ToyRecord op = toy();
    const uint32_t x = op.node(BP_NODE_ARG, {}, 0);
    const uint32_t shared = op.call("t::mul", {x, x});
    const uint32_t left = op.call("t::add", {shared, x}), right = op.call("t::fail", {shared});
    const uint32_t condition = op.constant(bool_value(take));
    op.formula(BP_RULE_DECOMPOSE, {}, {op.node(BP_NODE_IF, {condition, take ? left : right, take ? right : left})});
    const bp_value result = run_one(op, vjp());
    EXPECT_EQ(get(result), 6);
    drop(result);
  }
}

TEST_F(Evaluator, LogicStopsWhereTheFirstOperandDecides) {
  ToyRecord op = toy();
  const uint32_t x = op.node(BP_NODE_ARG, {}, 0), z = op.node(BP_NODE_ARG, {}, 1);
  const uint32_t deep = op.builtin("gt", {op.node(BP_NODE_NDIM, {z}), op.constant(int_value(5))});
  const uint32_t condition = op.builtin("and", {op.builtin("present", {z}), deep});
  const uint32_t either = op.builtin("or", {op.builtin("not", {op.builtin("present", {z})}), deep});
  const uint32_t both = op.builtin("and", {either, op.builtin("not", {condition})});
  op.formula(BP_RULE_DECOMPOSE, {}, {op.node(BP_NODE_IF, {both, x, z})});
  args_[1] = {};
  const bp_value result = run_one(op, vjp());
  EXPECT_EQ(result.u.t, &x_.toy.handle);
  drop(result);
}

TEST_F(Evaluator, NumbersBecomeImmediatesOfTensorPositions) {
  ToyRecord op = toy();
  const uint32_t x = op.node(BP_NODE_ARG);
  const uint32_t n = op.builtin("prod", {op.node(BP_NODE_SHAPE, {x})});
  const uint32_t half = op.builtin("truediv", {op.constant(int_value(3)), n});
  op.formula(BP_RULE_DECOMPOSE, {}, {op.call("t::mul", {op.call("t::mul", {x, half}), n})});
  const bp_value result = run_one(op, vjp());
  EXPECT_EQ(get(result), 2 * 0.5 * 6);
  drop(result);
}

TEST_F(Evaluator, AttributesOfAnImmediate) {
  ToyRecord op = toy();
  const uint32_t x = op.node(BP_NODE_ARG);
  const uint32_t ok =
      op.builtin("and", {op.builtin("eq", {op.node(BP_NODE_SHAPE, {x}), op.node(BP_NODE_LIST)}),
                         op.builtin("eq", {op.node(BP_NODE_DTYPE, {x}), op.constant(dtype_of(BP_INT64))})});
  op.formula(BP_RULE_DECOMPOSE, {}, {op.node(BP_NODE_IF, {ok, x, op.call("t::fail", {x})})});
  args_[0] = int_value(3, BP_VALUE_NUMBER);
  const bp_value result = run_one(op, vjp());
  EXPECT_EQ(result.tag, BP_TAG_INT);
  EXPECT_TRUE(result.flags & BP_VALUE_NUMBER);
}

TEST_F(Evaluator, OnlyTheSelectedResultsOfACallAreMade) {
  ToyRecord op = toy();
  const uint32_t x = op.node(BP_NODE_ARG);
  const uint32_t second = op.node(BP_NODE_SELECT, {op.call("t::two", {x})}, 1);
  op.formula(BP_RULE_DECOMPOSE, {}, {op.call("t::add", {second, second})});
  const bp_value result = run_one(op, vjp());
  EXPECT_EQ(get(result), 42);
  EXPECT_EQ(calls_[0], "two-+");
  drop(result);
}

TEST_F(Evaluator, WhatIsNotNeededIsNotSelected) {
  ToyRecord op = toy();
  const uint32_t both = op.call("t::two", {op.node(BP_NODE_COTANGENT)});
  op.formula(BP_RULE_VJP, {0, 1}, {op.node(BP_NODE_SELECT, {both}, 0), op.node(BP_NODE_SELECT, {both}, 1)});
  drop(run(op, vjp(0b11)));
  drop(run(op, vjp(0b10)));
  drop(run(op, vjp(0b01)));
  drop(run(op, vjp(0)));
  EXPECT_THAT(calls_, ElementsAre("two++", "two-+", "two+-"));
}

TEST_F(Evaluator, ATupleGoesToItsTargets) {
  ToyRecord op = toy();
  op.formula(BP_RULE_VJP, {0, 1}, {op.call("t::two", {op.node(BP_NODE_COTANGENT)})}, BP_FORMULA_TUPLE);
  auto results = run(op, vjp());
  EXPECT_EQ(get(results[0]), 70);
  EXPECT_EQ(get(results[1]), 71);
  drop(results);
  results = run(op, vjp(0b10));
  EXPECT_EQ(results[0].tag, BP_TAG_ABSENT);
  EXPECT_EQ(get(results[1]), 71);
  EXPECT_THAT(calls_, ElementsAre("two++", "two-+"));
  drop(results);
}

// Each op of a formula in turn fails: nothing stays behind, and the message is the op's.
TEST_F(Evaluator, AFailureReleasesEverything) {
  for (int at = 0; at < 4; ++at) {
    ToyRecord op = toy();
    const uint32_t x = op.node(BP_NODE_ARG);
    const auto step = [&](int i, uint32_t in) {
      return at == i ? op.call("t::fail", {in}) : op.call("t::mul", {in, in});
    };
    const uint32_t parts = op.call("t::split", {step(0, x)});
    const uint32_t body = step(1, op.node(BP_NODE_VAR, {}, 0));
    const uint32_t mapped = op.node(BP_NODE_MAP, {parts, op.call("t::add", {body, step(2, body)})}, 0);
    const uint32_t acc = op.node(BP_NODE_VAR, {}, 1), element = op.node(BP_NODE_VAR, {}, 2);
    const uint32_t folded = op.node(BP_NODE_FOLD, {mapped, x, op.call("t::add", {step(3, acc), element})}, 1);
    op.formula(BP_RULE_DECOMPOSE, {}, {folded});
    EXPECT_EQ(error_of([&] { run(op, vjp()); }), "t::fail always fails") << at;
    EXPECT_EQ(live_, 0) << at;
  }
}

TEST_F(Evaluator, RefusesWhatDoesNotFitAtRunTime) {
  const auto refusal = [&](auto build) {
    ToyRecord op = toy();
    op.formula(BP_RULE_DECOMPOSE, {}, {build(op, op.node(BP_NODE_ARG))});
    return error_of([&] { drop(run(op, vjp())); });
  };
  EXPECT_THAT(refusal([](ToyRecord& op, uint32_t) { return op.constant(int_value(1)); }), HasSubstr("gives an int"));
  EXPECT_THAT(refusal([](ToyRecord& op, uint32_t x) { return op.node(BP_NODE_SELECT, {x}); }), HasSubstr("selects"));
  EXPECT_THAT(refusal([](ToyRecord& op, uint32_t x) { return op.node(BP_NODE_SELECT, {op.call("t::split", {x})}, 3); }),
              HasSubstr("element 3 of 3"));
  EXPECT_THAT(refusal([](ToyRecord& op, uint32_t x) {
                return op.node(BP_NODE_IF, {x, x, x});
              }),
              HasSubstr("condition"));
  EXPECT_THAT(refusal([](ToyRecord& op, uint32_t x) { return op.node(BP_NODE_MAP, {x, x}); }), HasSubstr("maps over"));
  EXPECT_THAT(refusal([](ToyRecord& op, uint32_t x) {
                return op.node(BP_NODE_FOLD, {x, x, x});
              }),
              HasSubstr("folds over"));
  EXPECT_THAT(refusal([](ToyRecord& op, uint32_t x) { return op.node(BP_NODE_NDIM, {op.node(BP_NODE_SHAPE, {x})}); }),
              HasSubstr("attribute"));
  EXPECT_THAT(refusal([](ToyRecord& op, uint32_t x) {
                return op.call("t::total", {op.node(BP_NODE_LIST, {x, op.constant(int_value(1))})});
              }),
              HasSubstr("not of tensors"));
  EXPECT_THAT(refusal([](ToyRecord& op, uint32_t x) {
                const uint32_t list = op.node(BP_NODE_LIST, {x});
                return op.call("t::total", {op.node(BP_NODE_LIST, {list})});
              }),
              HasSubstr("list of lists"));
}

TEST_F(Evaluator, TemporariesGoWithTheirLastReader) {
  ToyRecord op = toy();
  uint32_t at = op.node(BP_NODE_ARG);
  for (int i = 0; i < 50; ++i) at = op.call("t::add", {at, op.constant(int_value(1))});
  op.formula(BP_RULE_DECOMPOSE, {}, {at});
  const bp_value result = run_one(op, vjp());
  EXPECT_EQ(get(result), 52);
  EXPECT_EQ(most_live_, 2);
  drop(result);
}

// As long as a record may be, straight and by demand: no recursion, whatever the depth.
TEST_F(Evaluator, ADeepChainNeedsNoStack) {
  for (bool branches : {false, true}) {
    ToyRecord op = toy();
    const uint32_t x = op.node(BP_NODE_ARG), one = op.constant(int_value(1)), yes = op.constant(bool_value(true));
    uint32_t at = x;
    while (op.nodes.size() + 2 < kMaxNodes) {
      if (branches) at = op.node(BP_NODE_IF, {yes, at, x});
      at = op.call("t::add", {at, one});
    }
    op.formula(BP_RULE_DECOMPOSE, {}, {at});
    const bp_value result = run_one(op, vjp());
    EXPECT_GT(get(result), 2000);
    drop(result);
  }
}

bp_status native(const bp_frame*, const bp_formula_env* env, bp_value* results) {
  results[0] = env->cotangents[0];
  ++number_of(results[0].u.t).references;
  return number_of(results[0].u.t).value == 7 ? BP_OK : BP_ERROR_DATA;
}

TEST_F(Evaluator, ANativeFormulaReplacesTheWalk) {
  ToyRecord op = toy();
  const uint32_t g = op.node(BP_NODE_COTANGENT);
  op.formula(BP_RULE_VJP, {0}, {op.call("t::add", {g, g})});
  op.formulas[0].native = native;
  auto results = run(op, vjp());
  EXPECT_EQ(get(results[0]), 7);
  drop(results);
  results = run(op, vjp(), false);
  EXPECT_EQ(get(results[0]), 14);
  drop(results);
  g_.value = 8;
  EXPECT_THROW(run(op, vjp()), Error);
  EXPECT_EQ(g_.references, 1);
}

// What a native formula gives next; references that it holds are the caller's.
bp_value g_given{};
bp_status gives(const bp_frame*, const bp_formula_env*, bp_value* results) {
  results[0] = g_given;
  return BP_OK;
}

// Plugins and Python write these values, and callers read them by their places.
TEST_F(Evaluator, ANativeFormulaGivesWhatTheSignatureHas) {
  const auto refusal = [&](uint16_t rule, const bp_value& given, bool list) {
    ToyRecord op("t::op");
    op.arg("x", BP_TYPE_TENSOR, list ? BP_ARG_LIST : 0);
    op.result("out", "dynamic", {});
    if (list) op.results[0].flags = BP_ARG_LIST;
    op.formula(rule, {0}, {op.node(BP_NODE_ARG)});
    op.formulas[0].native = gives;
    op.flags |= BP_OP_DYNAMIC;
    g_given = given;
    return error_of([&] { drop(run(op, vjp())); });
  };
  const auto tagged = [](uint16_t tag, uint32_t count = 0) {
    bp_value made{};
    made.tag = tag;
    made.count = count;
    return made;
  };
  const bp_value null = tagged(BP_TAG_TENSOR), nulls = tagged(BP_TAG_TENSOR_LIST, 2), unknown = tagged(77);
  const Ints ints{1, 2};
  for (uint16_t rule : {BP_RULE_VJP, BP_RULE_JVP, BP_RULE_DECOMPOSE, BP_RULE_BATCH}) {
    const bool derivative = rule == BP_RULE_VJP || rule == BP_RULE_JVP;
    EXPECT_EQ(refusal(rule, make({2}, 1), false), "");
    EXPECT_EQ(refusal(rule, make_owned_list(2), true), "");
    EXPECT_EQ(refusal(rule, {}, false) == "", derivative) << "nothing is a zero";
    EXPECT_EQ(refusal(rule, float_value(1), false) == "", rule == BP_RULE_JVP || rule == BP_RULE_DECOMPOSE);
    EXPECT_THAT(refusal(rule, make_owned_list(0), false), HasSubstr("expected a tensor"));
    EXPECT_THAT(refusal(rule, make_owned_list(3), false), HasSubstr("expected a tensor"));
    EXPECT_THAT(refusal(rule, make({2}, 1), true), HasSubstr("gives a tensor as"));
    EXPECT_THAT(refusal(rule, float_value(1), true), HasSubstr("expected a list of tensors"));
    EXPECT_THAT(refusal(rule, null, false), HasSubstr("NULL"));
    EXPECT_THAT(refusal(rule, nulls, true), HasSubstr("expected a list of tensors"));
    for (const bp_value& wrong : {unknown, ints_value(ints), string_value("x"), dtype_of(BP_INT8)})
      for (bool list : {false, true}) EXPECT_THAT(refusal(rule, wrong, list), HasSubstr("t::op: its "));
  }
}

TEST_F(Evaluator, AShapeFormulaGivesInts) {
  ToyRecord op = toy();
  op.result("a", "expr", {}).result("b", "expr", {});
  const uint32_t shape = op.node(BP_NODE_SHAPE, {op.node(BP_NODE_ARG)});
  const uint32_t longer = op.builtin("concat", {shape, op.node(BP_NODE_LIST, {op.constant(int_value(4))})});
  const uint32_t vast = op.builtin("repeat", {op.constant(int_value(1)), op.constant(int_value(65))});
  op.formula(BP_RULE_SHAPE, {}, {longer, vast});
  op_ = op.record();
  int64_t sizes[64];
  int32_t ndim = 0;
  FormulaInputs inputs;
  inputs.args = args_;
  evaluate_ints(*op_, op_->formulas[0], 0, inputs, sizes, &ndim);
  EXPECT_THAT(Ints(sizes, sizes + ndim), ElementsAre(2, 3, 4));
  EXPECT_THAT(error_of([&] { evaluate_ints(*op_, op_->formulas[0], 1, inputs, sizes, &ndim); }),
              HasSubstr("at most 64"));
}

TEST_F(Evaluator, NeedsAndBatchedAreBools) {
  ToyRecord op = toy();
  const uint32_t x = op.node(BP_NODE_ARG, {}, 0), y = op.node(BP_NODE_ARG, {}, 1);
  op.formula(BP_RULE_BATCH, {}, {op.node(BP_NODE_IF, {op.node(BP_NODE_BATCHED, {}, 1), y, x})});
  const bool batched[2] = {false, true};
  FormulaInputs inputs = vjp();
  inputs.batched = batched;
  bp_value result = run_one(op, inputs);
  EXPECT_EQ(result.u.t, &y_.toy.handle);
  drop(result);
  ToyRecord other = toy();
  const uint32_t a = other.node(BP_NODE_ARG, {}, 0), g = other.node(BP_NODE_COTANGENT);
  other.formula(BP_RULE_VJP, {0}, {other.node(BP_NODE_IF, {other.node(BP_NODE_NEEDS, {}, 1), g, a})});
  result = run_one(other, vjp(0b01));
  EXPECT_EQ(result.u.t, &x_.toy.handle);
  drop(result);
}

}  // namespace
}  // namespace backplane::core
