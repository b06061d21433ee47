// Ops that a program registers itself, and what their records may hold beyond a registry file's: formulas that are
// functions alone, dtypes by a function, kernels that make their own results, and kernels for all backends.
#include "backplane/registration.hpp"

#include <gtest/gtest.h>

#include "backplane/autograd.hpp"
#include "call/dispatch.hpp"
#include "host_backend.hpp"
#include "null_backend.hpp"
#include "record/host_table.hpp"
#include "record/toy_record.hpp"

namespace backplane::core {
namespace {

using testing::item;
using testing::scalar;
using testing::tensor;
using testing::values;

#define EXPECT_MENTIONS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

Tensor call_op(OpHandle op, std::initializer_list<bp_value> args) { return backplane::call(op, args); }

// ---- kernels ---------------------------------------------------------------------------------------------------

struct Plan {
  double add = 0;
  bool alias = false, nothing = false, flat = false;
  int calls = 0;
};

// The sum of its argument and a number, by ops.
bp_status by_ops(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  auto& plan = *static_cast<Plan*>(frame->context);
  ++plan.calls;
  if (frame->stream || frame->ticket) return BP_ERROR_INTERNAL;
  if (outs[0].tag != BP_TAG_ABSENT || outs[0].flags) return BP_ERROR_INTERNAL;
  if (plan.nothing) return BP_OK;
  bp_value operands[] = {args[0], number(value(plan.add))};
  const char* op = plan.flat ? "bp::sum" : "bp::add";
  return frame->host->call_op(frame, frame->host->find_op(op), operands, plan.flat ? 1 : 2, outs, 1);
}

bp_kernel_def row(const char* op, Plan& plan, const char* backend = "null") {
  bp_kernel_def def = testing::kernel_row(op, backend, by_ops);
  def.context = &plan;
  def.flags = BP_KERNEL_STRIDED | BP_KERNEL_CALLS_OPS | BP_KERNEL_OWN_RESULTS;
  def.file = "toy.py";
  def.line = 7;
  return def;
}

TEST(OwnResults, AreTheKernelsTensors) {
  ToyRecord toy("toy::own");
  toy.arg("x");
  Plan plan{.add = 2};
  Registration registration("test");
  const bp_kernel_def kernel = row("toy::own", plan);
  const OpHandle op = registration.define(toy.def(), {&kernel, 1});
  EXPECT_EQ(values(call_op(op, {value(tensor({1, 2}, {2}))})), (std::vector<double>{3, 4}));
}

TEST(OwnResults, AreCopiedToAnOutputThatTheCallerGives) {
  ToyRecord toy("toy::own_out");
  toy.arg("x");
  Plan plan{.add = 2};
  Registration registration("test");
  const bp_kernel_def kernel = row("toy::own_out", plan);
  const OpHandle op = registration.define(toy.def(), {&kernel, 1});
  Tensor x = tensor({1, 2}, {2}), target = tensor({0, 0}, {2});
  bp_value args[] = {value(x)}, out = value(target);
  out.flags = BP_VALUE_GIVEN;
  ASSERT_EQ(call_packed(op, args, 1, &out, 1), BP_OK) << last_error();
  EXPECT_EQ(values(target), (std::vector<double>{3, 4}));
  Tensor wrong = tensor({0, 0, 0}, {3});
  out.u.t = wrong.get();
  EXPECT_EQ(call_packed(op, args, 1, &out, 1), BP_ERROR_SHAPE);
  EXPECT_EQ(plan.calls, 1) << "an unfit output is refused before the kernel runs";
}

TEST(OwnResults, AreCheckedAgainstTheRulesAndFreed) {
  ToyRecord toy("toy::own_wrong");
  toy.arg("x");
  Plan plan{.flat = true};
  Registration registration("test");
  const bp_kernel_def kernel = row("toy::own_wrong", plan);
  const OpHandle op = registration.define(toy.def(), {&kernel, 1});
  Tensor x = tensor({1, 2}, {2});
  const int64_t before = testing::live_blocks();
  bp_status code = BP_OK;
  std::string text = error_of([&] { call_op(op, {value(x)}); }, &code);
  EXPECT_EQ(code, BP_ERROR_SHAPE);
  EXPECT_MENTIONS(
      text, "toy::own_wrong: its kernel made result 0 float64 of shape (); its shape rule says float64 of shape (2,)");
  plan.nothing = true;
  EXPECT_MENTIONS(error_of([&] { call_op(op, {value(x)}); }),
                  "its kernel stored nothing as result 0; expected a tensor");
  EXPECT_EQ(testing::live_blocks(), before);
}

TEST(Rows, ForAllBackendsComeAfterThoseThatNameOne) {
  ToyRecord toy("toy::ranked");
  toy.arg("x");
  Plan all{.add = 1}, own{.add = 2};
  Registration registration("test");
  bp_kernel_def kernels[] = {row("toy::ranked", all, "*"), row("toy::ranked", own)};
  kernels[0].priority = 100;
  OpHandle op = registration.define(toy.def(), kernels);
  EXPECT_EQ(item(call_op(op, {value(scalar(0))})), 2);
  op = registration.define(toy.def(), {kernels, 1});
  EXPECT_EQ(item(call_op(op, {value(scalar(0))})), 1);
}

// ---- formulas that are functions -------------------------------------------------------------------------------

struct Seen {
  int calls = 0;
  bool x_has_data = false, y_has_data = false;
  uint64_t needs = 0;
};

// d(x + 2) = g for x; nothing for y, whose shape it reads.
bp_status plus_vjp(const bp_frame* frame, const bp_formula_env* env, bp_value* results) {
  auto& seen = *static_cast<Seen*>(frame->op->context);
  ++seen.calls;
  seen.needs = env->needs;
  seen.x_has_data = env->args[0].tag == BP_TAG_TENSOR && env->args[0].u.t->storage;
  seen.y_has_data = env->args[1].tag == BP_TAG_TENSOR && env->args[1].u.t->storage;
  if (env->args[1].tag != BP_TAG_TENSOR || env->args[1].u.t->dl.shape[0] != 3 || env->batched) return BP_ERROR_INTERNAL;
  frame->host->retain(env->cotangents[0].u.t);
  results[0] = env->cotangents[0];
  return BP_OK;
}

TEST(NativeOnly, RunsAlwaysAndReadsWhatItsNodesState) {
  ToyRecord toy("toy::native");
  toy.arg("x");
  toy.arg("y");
  toy.promote = 0;
  toy.result("out", "same", {0});
  const uint32_t x = toy.node(BP_NODE_ARG, {}, 0), y = toy.node(BP_NODE_ARG, {}, 1);
  toy.formula(BP_RULE_VJP, {0, 1}, {x, toy.node(BP_NODE_SHAPE, {y})}, BP_FORMULA_NATIVE_ONLY);
  toy.formulas[0].native = plus_vjp;
  Plan plan{.add = 2};
  Seen seen;
  Registration registration("test");
  const bp_kernel_def kernel = row("toy::native", plan);
  toy.def();
  bp_op_def def = toy.def();
  def.context = &seen;
  const OpHandle op = registration.define(def, {&kernel, 1});
  for (const bool native : {true, false}) {
    const bool before = use_native_formulas(native);
    Tensor a = scalar(1), b = tensor({1, 2, 3}, {3});
    set_requires_grad(a, true);
    Tensor out = call_op(op, {value(a), value(b)});
    backward({&out, 1}, {}, {});
    use_native_formulas(before);
    EXPECT_EQ(item(grad_of(a)), 1);
  }
  EXPECT_EQ(seen.calls, 2);
  EXPECT_TRUE(seen.x_has_data);
  EXPECT_FALSE(seen.y_has_data) << "only its shape is kept";
  EXPECT_EQ(seen.needs, 1u);
}

TEST(NativeOnly, NeedsAFunctionAndNothingElse) {
  ToyRecord without("toy::without");
  without.arg("x");
  without.formula(BP_RULE_VJP, {0}, {}, BP_FORMULA_NATIVE_ONLY);
  EXPECT_MENTIONS(error_of([&] { without.record(); }), "native only, but has no function");
  ToyRecord both("toy::both");
  both.arg("x");
  both.formula(BP_RULE_VJP, {0}, {}, BP_FORMULA_NATIVE_ONLY | BP_FORMULA_ZERO);
  both.formulas[0].native = plus_vjp;
  EXPECT_MENTIONS(error_of([&] { both.record(); }), "native only and something else as well");
}

bp_status to_float32(const bp_frame*, const bp_value* args, int32_t, int32_t, bp_dtype* dtype) {
  *dtype = args[0].u.t->dl.data ? bp_dtype{BP_BOOL} : bp_dtype{BP_FLOAT32};
  return BP_OK;
}

TEST(DtypeFunction, SaysTheDtypeAndSeesNoData) {
  ToyRecord toy("toy::dtyped");
  toy.arg("x");
  toy.result("out", "same", {0}, {BP_RESULT_DTYPE_FUNCTION, 0, 0, 0, 0});
  EXPECT_MENTIONS(error_of([&] { toy.record(); }), "given by `dtype_fn`, which is NULL");
  bp_op_def def = toy.def();
  def.dtype_fn = to_float32;
  Registration registration("test");
  const OpHandle op = registration.define(def, {});
  Tensor x = tensor({1, 2}, {2});
  bp_value arg = value(x);
  EXPECT_EQ(infer(op, &arg, 1).at(0).dtype, BP_FLOAT32);
}

// ---- definitions -----------------------------------------------------------------------------------------------

TEST(Registration, ReplacesItsOwnUnderTheSameHandle) {
  ToyRecord toy("toy::anew");
  toy.arg("x");
  Plan first{.add = 1}, second{.add = 2};
  Registration registration("test");
  bp_kernel_def kernel = row("toy::anew", first);
  const OpHandle op = registration.define(toy.def(), {&kernel, 1});
  kernel.context = &second;
  EXPECT_EQ(registration.define(toy.def(), {&kernel, 1}), op);
  EXPECT_EQ(item(call_op(op, {value(scalar(0))})), 2);
}

TEST(Registration, AnotherSignatureGetsAnotherHandle) {
  ToyRecord toy("toy::wider"), wider("toy::wider");
  toy.arg("x");
  wider.arg("x");
  wider.arg("y");
  Plan plan;
  Registration registration("test");
  const bp_kernel_def kernel = row("toy::wider", plan);
  const OpHandle old = registration.define(toy.def(), {&kernel, 1});
  const OpHandle now = registration.define(wider.def(), {&kernel, 1});
  EXPECT_NE(old, now);
  EXPECT_EQ(find_op("toy::wider"), now);
  EXPECT_MENTIONS(error_of([&] { call_op(old, {value(scalar(0))}); }), "redefined with another signature");
}

TEST(Registration, ATakenNameNamesBothOwners) {
  ToyRecord toy("toy::taken");
  toy.arg("x");
  bp_op_def def = toy.def();
  def.file = "first.py";
  def.line = 3;
  Registration owner("test"), other("python");
  owner.define(def, {});
  def.file = "second.py";
  const std::string text = error_of([&] { other.define(def, {}); });
  EXPECT_MENTIONS(text, "taken by plugin \"test\" (first.py:3); plugin \"python\" (second.py:3) must choose another");
}

TEST(Registration, AFailureLeavesWhatWas) {
  ToyRecord toy("toy::kept");
  toy.arg("x");
  Plan plan{.add = 1};
  Registration registration("test");
  bp_kernel_def kernel = row("toy::kept", plan);
  const OpHandle op = registration.define(toy.def(), {&kernel, 1});
  bp_op_def broken = toy.def();
  broken.results.count = 0;
  EXPECT_NE(error_of([&] { registration.define(broken, {}); }), "");
  EXPECT_EQ(item(call_op(op, {value(scalar(0))})), 1);
}

TEST(Registration, WithdrawsItsOpWhenItEnds) {
  ToyRecord toy("toy::gone");
  toy.arg("x");
  OpHandle op = BP_NO_OP;
  {
    Registration registration("test");
    op = registration.define(toy.def(), {});
  }
  EXPECT_MENTIONS(error_of([&] { call_op(op, {value(scalar(0))}); }), "was unloaded");
  Registration again("other");
  EXPECT_NE(again.define(toy.def(), {}), op) << "the name is free";
}

// The argument, as often as its value says.
bp_status repeat(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  const auto count = static_cast<uint32_t>(*static_cast<const double*>(args[0].u.t->dl.data));
  bp_tensor** elements = nullptr;
  if (const bp_status status = frame->host->alloc_list(frame, outs, count, &elements)) return status;
  for (uint32_t i = 0; i < count; ++i) {
    bp_value made{};
    if (const bp_status status = frame->host->alloc_output(frame, &made, BP_FLOAT64, 0, nullptr)) return status;
    *static_cast<double*>(made.u.t->dl.data) = i;
    elements[i] = made.u.t;
    if (i == 3) return BP_ERROR_DATA;
  }
  return BP_OK;
}

struct Repeated {
  ToyRecord toy{"toy::repeat"};
  Registration registration{"test"};
  OpHandle op = BP_NO_OP;
  Repeated() {
    toy.arg("x");
    toy.result("out", "dynamic", {});
    toy.results[0].flags = BP_ARG_LIST;
    toy.flags = BP_OP_DYNAMIC;
    static Plan unused;
    bp_kernel_def kernel = row("toy::repeat", unused);
    kernel.fn = repeat;
    kernel.flags = 0;
    op = registration.define(toy.def(), {&kernel, 1});
  }
};

TEST(HostLists, AreResultsOfKernels) {
  Repeated repeated;
  const int64_t before = testing::live_blocks();
  {
    Tensor x = scalar(3);
    bp_value arg = value(x), out{};
    ASSERT_EQ(call_packed(repeated.op, &arg, 1, &out, 1), BP_OK) << last_error();
    const std::vector<Tensor> list = take_list(out);
    EXPECT_EQ(out.tag, BP_TAG_ABSENT);
    ASSERT_EQ(list.size(), 3u);
    EXPECT_EQ(item(list[2]), 2);
  }
  EXPECT_EQ(testing::live_blocks(), before);
}

TEST(HostLists, AreFreedWhereTheKernelFails) {
  Repeated repeated;
  Tensor x = scalar(5);
  const int64_t before = testing::live_blocks();
  bp_value arg = value(x), out{};
  EXPECT_EQ(call_packed(repeated.op, &arg, 1, &out, 1), BP_ERROR_DATA);
  EXPECT_EQ(out.tag, BP_TAG_ABSENT);
  EXPECT_EQ(testing::live_blocks(), before);
}

TEST(HostLists, AreNotRecorded) {
  Repeated repeated;
  Tensor x = scalar(2);
  set_requires_grad(x, true);
  bp_value arg = value(x), out{};
  EXPECT_EQ(call_packed(repeated.op, &arg, 1, &out, 1), BP_ERROR_NOT_IMPLEMENTED);
  EXPECT_MENTIONS(std::string(last_error()),
                  "toy::repeat: the tape differentiates a list of tensors only through a decomposition");
  EXPECT_EQ(out.tag, BP_TAG_ABSENT);
}

TEST(HostLists, HaveADynamicShape) {
  ToyRecord toy("toy::listed");
  toy.arg("x");
  toy.result("out", "same", {0});
  toy.results[0].flags = BP_ARG_LIST;
  EXPECT_MENTIONS(error_of([&] { toy.record(); }), "is a list, whose shape rule is `dynamic`");
}

TEST(HostLists, AreMadeInEmptySlots) {
  bp_value slot{};
  bp_tensor** elements = nullptr;
  ASSERT_EQ(host_table.alloc_list(nullptr, &slot, 2, &elements), BP_OK);
  EXPECT_EQ(slot.tag, BP_TAG_TENSOR_LIST);
  EXPECT_EQ(slot.count, 2u);
  EXPECT_EQ(elements[0], nullptr);
  EXPECT_EQ(host_table.alloc_list(nullptr, &slot, 2, &elements), BP_ERROR_VALUE);
  std::free(const_cast<void*>(slot.u.p));
}

}  // namespace
}  // namespace backplane::core
