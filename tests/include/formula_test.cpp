// What generated formulas are written in, against the evaluator's nodes: the same values for every kind of operand, the
// same ops in the same order where a cotangent is fitted, and every reference given back.
#include "backplane/plugin/formula.h"

#include <gtest/gtest.h>

#include "record/caller.hpp"
#include "record/evaluator.hpp"
#include "record/owned_value.hpp"
#include "record/toy_record.hpp"
#include "registry/op_link.hpp"

namespace backplane::core {
namespace {

const char* const kFitNames[] = {"t::sum_to", "t::cast", "t::real"};

// What an op gets from a formula that calls it with the given node of argument x.
bp_value evaluated(uint16_t kind, bp_value x) {
  static bp_value got;
  static std::unique_ptr<OpRecord> callee;
  ToyRecord takes("t::takes");
  takes.arg("value", BP_TYPE_SCALAR);
  callee = takes.record();
  const Caller saved = std::exchange(
      caller,
      Caller{[](const bp_frame*, uint32_t, const bp_value* args, int32_t, bp_value* outs, int32_t) -> bp_status {
               got = args[0];
               outs[0] = float_value(0, BP_VALUE_NUMBER);
               return BP_OK;
             },
             [](uint32_t) -> const OpRecord* { return callee.get(); }, nullptr, nullptr});
  ToyRecord toy("t::op");
  toy.arg("x");
  toy.formula(BP_RULE_DECOMPOSE, {}, {toy.call("t::takes", {toy.node(kind, {toy.node(BP_NODE_ARG)})})});
  const auto record = toy.record();
  link(*record, [](std::string_view) { return uint32_t{0}; });
  FormulaInputs inputs;
  inputs.args = &x;
  bp_value result{};
  evaluate(*record, record->formulas[0], inputs, &result);
  caller = saved;
  return got;
}

void expect_same(const bp_value& a, const bp_value& b) {
  ASSERT_EQ(a.tag, b.tag);
  EXPECT_EQ(a.flags, b.flags);
  EXPECT_EQ(a.count, b.count);
  if (a.tag == BP_TAG_INT_LIST)
    EXPECT_EQ(Ints(a.u.ints, a.u.ints + a.count), Ints(b.u.ints, b.u.ints + b.count));
  else
    EXPECT_EQ(a.u.i, b.u.i);
}

TEST(FormulaHeader, AttributesAreTheEvaluators) {
  ToyTensor half({2, 3}, BP_FLOAT16), none({}, BP_BOOL), large({0, 5, 1}, BP_COMPLEX128);
  const double parts[2] = {1, 2};
  for (bp_value x :
       {half.value(), none.value(), large.value(), bool_value(true, BP_VALUE_NUMBER), int_value(-3, BP_VALUE_NUMBER),
        float_value(2.5, BP_VALUE_NUMBER), complex_value(parts, BP_VALUE_NUMBER)}) {
    expect_same(bp_shape_of(x), evaluated(BP_NODE_SHAPE, x));
    expect_same(bp_int_value(bp_ndim_of(x)), evaluated(BP_NODE_NDIM, x));
    expect_same(bp_dtype_of(x), evaluated(BP_NODE_DTYPE, x));
    if (x.tag == BP_TAG_TENSOR) expect_same(bp_device_of(x), evaluated(BP_NODE_DEVICE, x));
  }
}

TEST(FormulaHeader, ValuesAreThoseOfRecords) {
  expect_same(bp_int_value(-7), int_value(-7));
  expect_same(bp_bool_value(7), bool_value(true));
  expect_same(bp_float_value(-0.0), float_value(-0.0));
  expect_same(bp_dtype_value(BP_INT8), dtype_of(BP_INT8));
  const Ints sizes{2, 3};
  expect_same(bp_int_list(sizes.data(), 2), ints_value(sizes));
  EXPECT_EQ(bp_string_value("mean", 4).count, string_value("mean").count);
  expect_same(bp_as_tensor(bp_int_value(2)), int_value(2, BP_VALUE_NUMBER));
  expect_same(bp_as_tensor(bp_dtype_value(BP_INT8)), dtype_of(BP_INT8));
  expect_same(bp_default_value(bp_absent_value(), int_value(1)), int_value(1));
  expect_same(bp_default_value(int_value(2), int_value(1)), int_value(2));
  const double z[] = {0.5, 2};
  double parts[2];
  const bp_value conjugate = bp_conj_of_number(complex_value(z, BP_VALUE_NUMBER), parts);
  EXPECT_EQ(conjugate.tag, BP_TAG_COMPLEX);
  EXPECT_EQ(conjugate.flags, BP_VALUE_NUMBER);
  EXPECT_EQ(conjugate.u.c, parts);
  EXPECT_EQ(parts[0], 0.5);
  EXPECT_EQ(parts[1], -2);
  expect_same(bp_conj_of_number(float_value(2), parts), float_value(2));
  EXPECT_EQ(bp_conj_of_number(ToyTensor({2}, BP_COMPLEX64).value(), parts).tag, BP_TAG_ABSENT);
}

// ---- fitting a cotangent -----------------------------------------------------------------------------------------

// Counted tensors, and the calls that made them: "sum_to (2,) float32".
struct Made {
  ToyTensor toy;
  int references = 1;
  Made(Ints shape, bp_dtype dtype) : toy(std::move(shape), dtype) { toy.handle.dl.data = this; }
};
Made& made_of(bp_tensor* t) { return *static_cast<Made*>(t->dl.data); }
int g_live = 0;
std::vector<std::string> g_calls;

bp_value make(const Ints& shape, bp_dtype dtype) {
  ++g_live;
  return (new Made(shape, dtype))->toy.value();
}
void retain(bp_tensor* t) { ++made_of(t).references; }
void release(bp_tensor* t) {
  if (--made_of(t).references) return;
  --g_live;
  delete &made_of(t);
}
int g_fails_at = -1;  // the number of the call that fails
bp_status call_fit_op(const bp_frame*, uint32_t op, const bp_value* args, int32_t n_args, bp_value* outs, int32_t) {
  const bp_tensor& x = *args[0].u.t;
  EXPECT_EQ(n_args, op == 2 ? 1 : 2);
  if (static_cast<int>(g_calls.size()) == g_fails_at) return BP_ERROR_VALUE;
  Ints shape(x.dl.shape, x.dl.shape + x.dl.ndim);
  bp_dtype dtype = x.dtype;
  if (op == 0) shape.assign(args[1].u.ints, args[1].u.ints + args[1].count);
  if (op == 1) dtype = static_cast<bp_dtype>(args[1].u.i);
  if (op == 2) dtype = real_dtype(dtype);
  outs[0] = make(shape, dtype);
  std::string text = kFitNames[op];
  for (int64_t size : shape) text += " " + std::to_string(size);
  g_calls.push_back(text + " " + kDtypeNames[dtype]);
  return BP_OK;
}

struct Fitted {
  bp_status status = BP_OK;
  std::vector<std::string> calls;
  bool as_given = false;
  bool operator==(const Fitted&) const = default;
};

Fitted fit_by_evaluator(bp_value cotangent, bp_value like) {
  ToyRecord toy("t::op");
  toy.arg("x");
  toy.fit_names = kFitNames;
  toy.formula(BP_RULE_VJP, {0}, {toy.node(BP_NODE_FIT, {toy.node(BP_NODE_COTANGENT)})});
  const auto record = toy.record();
  link(*record, [](std::string_view name) {
    return static_cast<uint32_t>(std::find(kFitNames, kFitNames + 3, name) - kFitNames);
  });
  FormulaInputs inputs;
  inputs.args = &like;
  inputs.cotangents = &cotangent;
  bp_value result{};
  Fitted fitted;
  try {
    evaluate(*record, record->formulas[0], inputs, &result);
  } catch (const Error& error) {
    fitted.status = error.code();
  }
  fitted.calls = std::exchange(g_calls, {});
  fitted.as_given = result.tag == cotangent.tag && result.u.t == cotangent.u.t;
  release_owned(result, release);
  return fitted;
}

Fitted fit_by_header(bp_value cotangent, bp_value like, bool owned) {
  bp_host host{};
  host.header = BP_HEADER(bp_host);
  host.call_op = call_fit_op;
  host.retain = retain;
  host.release = release;
  bp_frame frame{};
  frame.host = &host;
  const uint32_t ops[3] = {0, 1, 2};
  bp_value given = cotangent, result{};
  if (owned) bp_keep(&frame, given);
  Fitted fitted;
  fitted.status = bp_fit(&frame, ops, owned ? bp_move(&given) : given, owned, &like, &result);
  fitted.calls = std::exchange(g_calls, {});
  fitted.as_given = result.tag == cotangent.tag && result.u.t == cotangent.u.t;
  bp_drop(&frame, &result, 1);
  return fitted;
}

TEST(FormulaHeader, FitsAsTheEvaluatorDoes) {
  const Caller saved =
      std::exchange(caller, Caller{call_fit_op, [](uint32_t) -> const OpRecord* { return nullptr; }, retain, release});
  std::vector<bp_value> likes = {float_value(1, BP_VALUE_NUMBER)};
  for (bp_dtype dtype : {BP_FLOAT16, BP_FLOAT32, BP_COMPLEX64})
    for (const Ints& shape : {Ints{}, Ints{3}, Ints{2, 3}, Ints{3, 2}}) likes.push_back(make(shape, dtype));
  for (const bp_value& like : likes) {
    for (bp_dtype dtype : {BP_FLOAT16, BP_FLOAT64, BP_COMPLEX64, BP_COMPLEX128}) {
      for (const Ints& shape : {Ints{}, Ints{2, 3}, Ints{1, 2, 3}}) {
        for (g_fails_at = -1; g_fails_at < 3; ++g_fails_at) {
          const int before = g_live;
          const bp_value cotangent = make(shape, dtype);
          const Fitted expected = fit_by_evaluator(cotangent, like);
          EXPECT_EQ(fit_by_header(cotangent, like, false), expected);
          EXPECT_EQ(fit_by_header(cotangent, like, true), expected);
          release(cotangent.u.t);
          EXPECT_EQ(g_live, before) << "references were lost or given back twice";
        }
      }
    }
  }
  const bp_value zero{};
  EXPECT_EQ(fit_by_header(zero, likes[1], false), fit_by_evaluator(zero, likes[1]));
  for (size_t i = 1; i < likes.size(); ++i) release(likes[i].u.t);
  caller = saved;
}

}  // namespace
}  // namespace backplane::core
