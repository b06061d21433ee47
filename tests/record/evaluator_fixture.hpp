// What the evaluator's tests share: a toy registry over counted tensors of one number, in the place of the call path.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "record/caller.hpp"
#include "record/evaluator.hpp"
#include "record/host_table.hpp"
#include "record/owned_value.hpp"
#include "record/toy_record.hpp"
#include "registry/op_link.hpp"

namespace backplane::core {

// A counted tensor that holds one number for all of its elements.
struct Number {
  ToyTensor toy;
  double value;
  int references = 1;
  Number(Ints shape, double v, bp_dtype dtype) : toy(std::move(shape), dtype), value(v) { toy.handle.dl.data = this; }
};
inline Number& number_of(bp_tensor* t) { return *static_cast<Number*>(t->dl.data); }

// The toy registry: handles are indices of this list.
enum Op : uint32_t { kMul, kAdd, kSumTo, kCast, kReal, kTwo, kSplit, kFail, kTotal };
inline constexpr const char* kOpNames[] = {"t::mul", "t::add",   "t::sum_to", "t::cast", "t::real",
                                           "t::two", "t::split", "t::fail",   "t::total"};
inline constexpr const char* kFitNames[] = {"t::sum_to", "t::cast", "t::real"};

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

}  // namespace backplane::core
