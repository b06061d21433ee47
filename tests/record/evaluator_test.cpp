// The evaluator over toy tensors: what it computes, what it calls, and that every reference is given back, also where
// an op fails half-way.
#include "record/evaluator.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "record/caller.hpp"
#include "record/host_table.hpp"
#include "record/owned_value.hpp"
#include "record/toy_record.hpp"
#include "registry/op_link.hpp"
#include "registry/registry.hpp"

namespace backplane::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A counted tensor that holds one number for all of its elements.
struct Number {
  ToyTensor toy;
  double value;
  int references = 1;
  Number(Ints shape, double v, bp_dtype dtype) : toy(std::move(shape), dtype), value(v) { toy.handle.dl.data = this; }
};
Number& number_of(bp_tensor* t) { return *static_cast<Number*>(t->dl.data); }

// The toy registry: handles are indices of this list.
enum Op : uint32_t { kMul, kAdd, kSumTo, kCast, kReal, kTwo, kSplit, kFail, kTotal };
constexpr const char* kOpNames[] = {"t::mul", "t::add",   "t::sum_to", "t::cast", "t::real",
                                    "t::two", "t::split", "t::fail",   "t::total"};
constexpr const char* kFitNames[] = {"t::sum_to", "t::cast", "t::real"};

class Evaluator : public testing::Test {
 protected:
  static inline int live_ = 0;  // tensors that calls made and nobody has released
  static inline int most_live_ = 0;
  static inline std::vector<std::string> calls_;
  static inline std::vector<std::unique_ptr<OpRecord>> records_;

  void SetUp() override {
    saved_ = caller;
    caller = {call, [](uint32_t op) -> const OpRecord* { return records_[op].get(); },
              [](bp_tensor* t) { ++number_of(t).references; }, release};
    calls_.clear();
    live_ = most_live_ = 0;
    records_.clear();
    for (uint32_t op = 0; op < std::size(kOpNames); ++op) records_.push_back(signature(op));
  }
  void TearDown() override {
    EXPECT_EQ(live_, 0) << "tensors were not released";
    caller = saved_;
  }

  static std::unique_ptr<OpRecord> signature(uint32_t op) {
    ToyRecord toy(kOpNames[op]);
    if (op == kTotal) {
      toy.arg("xs", BP_TYPE_TENSOR, BP_ARG_LIST);
      toy.result("out", "stack", {0});
      return toy.record();
    }
    toy.tensors({"x"});
    if (op == kMul || op == kAdd) toy.arg("y", BP_TYPE_TENSOR);
    if (op == kSumTo) toy.arg("shape", BP_TYPE_SHAPE);
    if (op == kCast) toy.arg("dtype", BP_TYPE_DTYPE);
    if (op == kTwo) toy.result("a", "same", {0}).result("b", "same", {0});
    return toy.record();
  }
  static void release(bp_tensor* t) {
    Number& n = number_of(t);
    if (--n.references == 0) {
      --live_;
      delete &n;
    }
  }
  static bp_value make(Ints shape, double value, bp_dtype dtype = BP_FLOAT32) {
    auto* n = new Number(std::move(shape), value, dtype);
    most_live_ = std::max(most_live_, ++live_);
    return n->toy.value();
  }
  static double get(const bp_value& v) {
    if (v.tag == BP_TAG_TENSOR) return number_of(v.u.t).value;
    EXPECT_TRUE(v.flags & BP_VALUE_NUMBER) << "a number in a tensor position must say so";
    return v.tag == BP_TAG_FLOAT ? v.u.f : static_cast<double>(v.u.i);
  }
  static bp_value like(const bp_value& v, double value) {
    if (v.tag != BP_TAG_TENSOR) return make({}, value);
    return make(number_of(v.u.t).toy.shape, value, v.u.t->dtype);
  }
  static bp_status call(const bp_frame*, uint32_t op, const bp_value* args, int32_t n_args, bp_value* outs,
                        int32_t n_outs) {
    std::string text = kOpNames[op] + 3;
    if (op == kTwo)
      for (int32_t i = 0; i < n_outs; ++i) text += outs[i].flags & BP_VALUE_NOT_WANTED ? "-" : "+";
    calls_.push_back(text);
    const bp_value& x = args[0];
    const bp_value& larger =
        n_args > 1 && args[1].tag == BP_TAG_TENSOR && (x.tag != BP_TAG_TENSOR || x.u.t->dl.ndim < args[1].u.t->dl.ndim)
            ? args[1]
            : x;
    switch (op) {
      case kMul:
        outs[0] = like(larger, get(x) * get(args[1]));
        break;
      case kAdd:
        outs[0] = like(larger, get(x) + get(args[1]));
        break;
      case kSumTo:
        outs[0] = make(Ints(args[1].u.ints, args[1].u.ints + args[1].count), get(x), x.u.t->dtype);
        break;
      case kCast:
        outs[0] = make(number_of(x.u.t).toy.shape, get(x), static_cast<bp_dtype>(args[1].u.i));
        break;
      case kReal:
        outs[0] = make(number_of(x.u.t).toy.shape, get(x), real_dtype(x.u.t->dtype));
        break;
      case kTwo:
        for (int32_t i = 0; i < n_outs; ++i)
          if (!(outs[i].flags & BP_VALUE_NOT_WANTED)) outs[i] = like(x, get(x) * 10 + i);
        break;
      case kSplit:
        outs[0] = make_owned_list(3);
        for (int i = 0; i < 3; ++i) owned_tensors(outs[0])[i] = make({}, get(x) + i).u.t;
        break;
      case kTotal: {
        double sum = 0;
        EXPECT_EQ(x.tag, BP_TAG_TENSOR_LIST);
        for (uint32_t i = 0; i < x.count; ++i)
          if (x.u.tensors[i]) sum += number_of(x.u.tensors[i]).value;
        outs[0] = make({}, sum);
        break;
      }
      default:
        host_table.set_error(BP_ERROR_VALUE, "t::fail always fails");
        return BP_ERROR_VALUE;
    }
    return BP_OK;
  }

  static uint32_t find(std::string_view name) {
    for (uint32_t op = 0; op < std::size(kOpNames); ++op)
      if (name == kOpNames[op]) return op;
    return BP_NO_OP;
  }
  // Evaluates the record's last formula.
  std::vector<bp_value> run(ToyRecord& toy, FormulaInputs inputs, bool native = true) {
    toy.fit_names = kFitNames;
    op_ = toy.record();
    link(*op_, find);
    std::vector<bp_value> results(16);
    evaluate(*op_, op_->formulas.back(), inputs, results.data(), native);
    return results;
  }
  bp_value run_one(ToyRecord& toy, FormulaInputs inputs) { return run(toy, inputs)[0]; }
  static void drop(std::vector<bp_value> results) {
    for (bp_value& v : results) release_owned(v, release);
  }
  static void drop(bp_value v) { release_owned(v, release); }

  Caller saved_;
  std::unique_ptr<OpRecord> op_;
  Number x_{{2, 3}, 2, BP_FLOAT32}, y_{{3}, 5, BP_FLOAT32}, g_{{2, 3}, 7, BP_FLOAT32};
  bp_value args_[4] = {x_.toy.value(), y_.toy.value(), {}, {}};
  bp_value g_values_[2] = {g_.toy.value(), {}};
  FormulaInputs vjp(uint64_t needs = ~uint64_t{0}) {
    FormulaInputs inputs;
    inputs.args = args_;
    inputs.cotangents = g_values_;
    inputs.needs = needs;
    return inputs;
  }
  static ToyRecord toy(const char* name = "t::op") {
    ToyRecord toy(name);
    toy.tensors({"x", "y"});
    return toy;
  }
};

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
