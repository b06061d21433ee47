// The vocabulary of shape rules: shapes against NumPy's. Views are in shape_views_test.cpp.
#include "record/shape_rules.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "record/shape_fixture.hpp"

namespace backplane::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Broadcast, AgreesWithNumPy) {
  const auto op = op_with("broadcast", {kTensor, kTensor, kTensor});
  const auto of = [&](Ints a, Ints b) {
    ToyTensor x(a), y(b);
    return shape(*op, {x.value(), y.value(), bp_value{}});
  };
  EXPECT_THAT(of({2, 3}, {2, 3}), ElementsAre(2, 3));
  EXPECT_THAT(of({3, 1}, {4}), ElementsAre(3, 4));
  EXPECT_THAT(of({4}, {3, 1}), ElementsAre(3, 4));
  EXPECT_THAT(of({1, 5}, {7, 1, 1}), ElementsAre(7, 1, 5));
  EXPECT_THAT(of({0, 1}, {1, 4}), ElementsAre(0, 4));
  EXPECT_THAT(of({1}, {0}), ElementsAre(0));
  EXPECT_THAT(of({}, {}), ElementsAre());
  EXPECT_THAT(of({}, {2}), ElementsAre(2));
  ToyTensor x({2, 3});
  EXPECT_THAT(shape(*op, {x.value(), int_value(1, BP_VALUE_NUMBER), float_value(2, BP_VALUE_NUMBER)}),
              ElementsAre(2, 3));
  EXPECT_THAT(shape(*op, {int_value(1, BP_VALUE_NUMBER), int_value(1, BP_VALUE_NUMBER), bp_value{}}), ElementsAre());
}

TEST(Broadcast, RefusesWhatDoesNotFitAndWhatCannotBeCounted) {
  const auto op = op_with("broadcast", {kTensor, kTensor});
  ToyTensor x({2, 3}), y({4}), z({0, 2});
  bp_status code = 0;
  const std::string text = error(*op, {x.value(), y.value()}, &code);
  EXPECT_EQ(code, BP_ERROR_SHAPE);
  EXPECT_THAT(text, HasSubstr("t::op: the shape (4,) does not broadcast with (2, 3)"));
  EXPECT_NE(error(*op, {x.value(), z.value()}), "");
  ToyTensor tall({int64_t{1} << 40, 1}, {0, 0}, 0), wide({1, int64_t{1} << 40}, {0, 0}, 0);
  error(*op, {tall.value(), wide.value()}, &code);
  EXPECT_EQ(code, BP_ERROR_MEMORY);
}

TEST(Reduce, DropsOrKeepsTheNamedAxes) {
  const auto op = op_with("reduce", {kTensor, kAxes, kBool});
  ToyTensor x({2, 3, 4});
  const auto of = [&](bp_value axes, bool keep) { return shape(*op, {x.value(), axes, bool_value(keep)}); };
  EXPECT_THAT(of({}, false), ElementsAre());
  EXPECT_THAT(of({}, true), ElementsAre(1, 1, 1));
  const Ints middle = {1}, outer = {-1, 0}, none = {}, twice = {0, -3}, far = {3};
  EXPECT_THAT(of(ints_value(middle), false), ElementsAre(2, 4));
  EXPECT_THAT(of(ints_value(outer), false), ElementsAre(3));
  EXPECT_THAT(of(ints_value(outer), true), ElementsAre(1, 3, 1));
  EXPECT_THAT(of(ints_value(none), false), ElementsAre(2, 3, 4));
  EXPECT_THAT(of(int_value(-1), false), ElementsAre(2, 3));
  bp_status code = 0;
  EXPECT_THAT(error(*op, {x.value(), ints_value(twice), {}}, &code), HasSubstr("named twice"));
  EXPECT_EQ(code, BP_ERROR_VALUE);
  EXPECT_THAT(error(*op, {x.value(), ints_value(far), {}}, &code), HasSubstr("axis 3 is out of range for 3 dims"));
  EXPECT_EQ(code, BP_ERROR_INDEX);
}

TEST(Matmul, FollowsTheArrayApi) {
  const auto op = op_with("matmul", {kTensor, kTensor});
  const auto of = [&](Ints a, Ints b) {
    ToyTensor x(a), y(b);
    return shape(*op, {x.value(), y.value()});
  };
  EXPECT_THAT(of({2, 3}, {3, 4}), ElementsAre(2, 4));
  EXPECT_THAT(of({3}, {3}), ElementsAre());
  EXPECT_THAT(of({3}, {3, 4}), ElementsAre(4));
  EXPECT_THAT(of({2, 3}, {3}), ElementsAre(2));
  EXPECT_THAT(of({5, 1, 2, 3}, {7, 3, 4}), ElementsAre(5, 7, 2, 4));
  EXPECT_THAT(of({2, 0}, {0, 3}), ElementsAre(2, 3));
  EXPECT_THAT(of({6, 3}, {5, 3, 4}), ElementsAre(5, 6, 4));
  EXPECT_THROW(of({2, 3}, {4, 3}), Error);
  EXPECT_THROW(of({}, {3}), Error);
  EXPECT_THROW(of({2, 2, 3}, {3, 3, 4}), Error);
}

TEST(Joins, ConcatAndStack) {
  const auto concat = op_with("concat", {kTensors, kAxis});
  const auto stack = op_with("stack", {kTensors, kAxis});
  ToyTensor a({2, 3}), b({2, 5}), c({2, 3});
  const std::vector<bp_tensor*> ab = {&a.handle, &b.handle}, ac = {&a.handle, &c.handle}, none;
  EXPECT_THAT(shape(*concat, {tensors_value(ab), int_value(-1)}), ElementsAre(2, 8));
  EXPECT_THAT(shape(*concat, {tensors_value(ab), {}}), ElementsAre(16));
  EXPECT_THAT(error(*concat, {tensors_value(ab), int_value(0)}), HasSubstr("element 1 of 'a' has shape (2, 5)"));
  EXPECT_THAT(error(*concat, {tensors_value(none), int_value(0)}), HasSubstr("empty"));
  EXPECT_THAT(shape(*stack, {tensors_value(ac), int_value(0)}), ElementsAre(2, 2, 3));
  EXPECT_THAT(shape(*stack, {tensors_value(ac), int_value(-1)}), ElementsAre(2, 3, 2));
  EXPECT_THAT(error(*stack, {tensors_value(ab), int_value(0)}), HasSubstr("expected the shape of the first"));
  EXPECT_THAT(error(*stack, {tensors_value(ac), int_value(3)}), HasSubstr("out of range"));
}

TEST(Indexing, TakeAndTakeAlong) {
  const auto take = op_with("take", {kTensor, kTensor, kAxis});
  const auto along = op_with("take_along", {kTensor, kTensor, kAxis});
  ToyTensor x({2, 3, 4}), i({5, 6}, BP_INT64), j({2, 7, 1}, BP_INT64), v({3});
  EXPECT_THAT(shape(*take, {x.value(), i.value(), int_value(1)}), ElementsAre(2, 5, 6, 4));
  EXPECT_THAT(shape(*take, {v.value(), i.value(), {}}), ElementsAre(5, 6));
  EXPECT_THAT(shape(*take, {x.value(), int_value(0, BP_VALUE_NUMBER), int_value(0)}), ElementsAre(3, 4));
  EXPECT_NE(error(*take, {x.value(), i.value(), {}}), "");
  EXPECT_THAT(shape(*along, {x.value(), j.value(), int_value(-2)}), ElementsAre(2, 7, 4));
  EXPECT_NE(error(*along, {x.value(), j.value(), int_value(0)}), "");
  EXPECT_NE(error(*along, {x.value(), i.value(), int_value(0)}), "");
}

// The cases of NumPy's manual on combining advanced and basic indexing.
TEST(Indexing, AdvancedIndexFollowsNumPysRuleOfPlace) {
  const auto op = op_with("index", {kTensor, kMaybeTensors});
  ToyTensor x({10, 20, 30, 40}), i({2, 3}, BP_INT64), j({3}, BP_INT32), wrong({2}, BP_FLOAT32);
  const auto of = [&](std::vector<bp_tensor*> indices) { return shape(*op, {x.value(), tensors_value(indices)}); };
  bp_tensor *p = &i.handle, *q = &j.handle;
  EXPECT_THAT(of({p}), ElementsAre(2, 3, 20, 30, 40));
  EXPECT_THAT(of({nullptr, p}), ElementsAre(10, 2, 3, 30, 40));
  EXPECT_THAT(of({nullptr, p, q}), ElementsAre(10, 2, 3, 40));
  EXPECT_THAT(of({nullptr, p, nullptr, q}), ElementsAre(2, 3, 10, 30));
  EXPECT_THAT(of({q, nullptr, p}), ElementsAre(2, 3, 20, 40));
  EXPECT_THAT(of({p, q, p, q}), ElementsAre(2, 3));
  EXPECT_THAT(of({nullptr, nullptr, nullptr, q}), ElementsAre(10, 20, 30, 3));
  EXPECT_THAT(of({}), ElementsAre(10, 20, 30, 40));
  EXPECT_THAT(of({nullptr}), ElementsAre(10, 20, 30, 40));
  EXPECT_THROW(of({p, p, p, p, p}), Error);
  EXPECT_THROW(of({&wrong.handle}), Error);
  ToyTensor k({4}, BP_INT64);
  EXPECT_THROW(of({p, &k.handle}), Error);
}

TEST(Windows, ConvCountsThem) {
  const auto op = op_with("conv", {kTensor, kTensor, kShape, kShape, kShape, kSize});
  ToyTensor x({8, 6, 28, 28}), w({12, 6, 5, 3}), grouped({12, 2, 5, 3});
  const Ints one = {1}, two = {2, 1}, three = {1, 1, 1}, zero = {0};
  EXPECT_THAT(shape(*op, {x.value(), w.value(), {}, {}, {}, {}}), ElementsAre(8, 12, 24, 26));
  EXPECT_THAT(shape(*op, {x.value(), w.value(), ints_value(two), ints_value(one), ints_value(one), int_value(1)}),
              ElementsAre(8, 12, 13, 28));
  EXPECT_THAT(shape(*op, {x.value(), w.value(), {}, {}, ints_value(two), {}}), ElementsAre(8, 12, 20, 26));
  EXPECT_THAT(shape(*op, {x.value(), grouped.value(), {}, {}, {}, int_value(3)}), ElementsAre(8, 12, 24, 26));
  EXPECT_THAT(error(*op, {x.value(), grouped.value(), {}, {}, {}, {}}), HasSubstr("channels per group"));
  EXPECT_THAT(error(*op, {x.value(), w.value(), ints_value(zero), {}, {}, {}}), HasSubstr("expected 1 or more"));
  EXPECT_THAT(error(*op, {x.value(), w.value(), ints_value(three), {}, {}, {}}), HasSubstr("expected 1 or 2"));
  const Ints vast = {INT64_MAX};
  EXPECT_THAT(error(*op, {x.value(), w.value(), {}, {}, ints_value(vast), {}}), HasSubstr("no room"));
  EXPECT_THAT(error(*op, {x.value(), w.value(), {}, ints_value(vast), {}, {}}), HasSubstr("no room"));
}

// A kernel of two axes reads two entries of each list, and two sizes of the images.
TEST(Windows, OfImagesHaveAnEntryForEachAxisInEveryList) {
  const auto conv = op_with("conv2d", {kTensor, kTensor, kShape, kShape, kShape, kSize});
  const auto pool = op_with("pool2d", {kTensor, kShape, kShape, kShape});
  ToyTensor x({8, 6, 28, 28}), w({12, 6, 5, 3}), line({8, 6, 28}), of_line({12, 6, 5});
  const Ints one = {1}, two = {2, 1}, none = {};
  EXPECT_THAT(shape(*conv, {x.value(), w.value(), ints_value(two), {}, {}, {}}), ElementsAre(8, 12, 12, 26));
  for (size_t setting : {2, 3, 4}) {
    std::vector<bp_value> args = {x.value(), w.value(), {}, {}, {}, {}};
    args[setting] = ints_value(one);
    EXPECT_THAT(error(*conv, args), HasSubstr("has 1 entry; expected 2, one per spatial axis"));
  }
  EXPECT_THAT(error(*conv, {line.value(), of_line.value(), {}, {}, {}, {}}), HasSubstr("expected images (n, c, h, w)"));
  EXPECT_THAT(shape(*pool, {x.value(), ints_value(two), ints_value(none), {}}), ElementsAre(8, 6, 14, 28));
  EXPECT_THAT(error(*pool, {x.value(), ints_value(one), {}, {}}), HasSubstr("has 1 entry; expected 2"));
  EXPECT_THAT(error(*pool, {x.value(), ints_value(two), ints_value(one), {}}), HasSubstr("expected none or 2"));
  EXPECT_THAT(error(*pool, {line.value(), ints_value(one), {}, {}}), HasSubstr("expected images (n, c, h, w)"));
}

TEST(Windows, PoolTakesItsKernelAsStride) {
  const auto op = op_with("pool", {kTensor, kShape, kShape, kShape});
  ToyTensor x({2, 3, 9, 8});
  const Ints two = {2}, mixed = {3, 2}, one = {1}, none = {};
  EXPECT_THAT(shape(*op, {x.value(), ints_value(two), {}, {}}), ElementsAre(2, 3, 4, 4));
  EXPECT_THAT(shape(*op, {x.value(), ints_value(mixed), ints_value(none), ints_value(one)}), ElementsAre(2, 3, 3, 5));
  EXPECT_THAT(shape(*op, {x.value(), ints_value(two), ints_value(one), {}}), ElementsAre(2, 3, 8, 7));
  EXPECT_THAT(error(*op, {x.value(), ints_value(none), {}, {}}), HasSubstr("has 0 entries; expected 1 or 2"));
  EXPECT_THAT(error(*op, {x.value(), ints_value(two), {}, ints_value(none)}), HasSubstr("has 0 entries"));
  EXPECT_THAT(error(*op, {x.value(), ints_value(one), {}, ints_value(one)}), HasSubstr("half the window"));
}

TEST(Factories, ArgScalarSameOneHot) {
  const auto arg = op_with("arg", {kShape});
  const Ints sizes = {2, 0, 3}, negative = {2, -1}, vast = {int64_t{1} << 32, int64_t{1} << 32};
  EXPECT_THAT(shape(*arg, {ints_value(sizes)}), ElementsAre(2, 0, 3));
  EXPECT_NE(error(*arg, {ints_value(negative)}), "");
  bp_status code = 0;
  error(*arg, {ints_value(vast)}, &code);
  EXPECT_EQ(code, BP_ERROR_MEMORY);
  const Ints deep(65, 1);
  EXPECT_THAT(error(*arg, {ints_value(deep)}), HasSubstr("more than 64 dims"));
  EXPECT_THAT(shape(*op_with("scalar", {}), {}), ElementsAre());
  ToyTensor x({4, 5});
  EXPECT_THAT(shape(*op_with("same", {kTensor}), {x.value()}), ElementsAre(4, 5));
  EXPECT_THAT(shape(*op_with("one_hot", {kTensor, kSize}), {x.value(), int_value(3)}), ElementsAre(4, 5, 3));
}

TEST(InferShape, ReadsAFormula) {
  ToyRecord toy("t::outer");
  toy.tensors({"x", "y"});
  toy.result("out", "expr", {});
  const uint32_t x = toy.node(BP_NODE_SHAPE, {toy.node(BP_NODE_ARG, {}, 0)});
  const uint32_t y = toy.node(BP_NODE_SHAPE, {toy.node(BP_NODE_ARG, {}, 1)});
  toy.formula(BP_RULE_SHAPE, {}, {toy.builtin("concat", {x, y})});
  const auto op = toy.record();
  ToyTensor a({2, 3}), b({4});
  EXPECT_THAT(shape(*op, {a.value(), b.value()}), ElementsAre(2, 3, 4));
  EXPECT_THAT(shape(*op, {a.value(), int_value(1, BP_VALUE_NUMBER)}), ElementsAre(2, 3));
}

bp_status half(const bp_frame*, const bp_value* args, int32_t, int32_t result, int64_t* sizes, int32_t* ndim) {
  const DLTensor& dl = args[0].u.t->dl;
  if (dl.data || args[0].u.t->storage || dl.shape[0] % 2) return BP_ERROR_SHAPE;
  *ndim = dl.shape[0] == 2 ? 65 : 1;
  sizes[0] = dl.shape[0] == 4 ? -1 : dl.shape[0] / 2 + result;
  return BP_OK;
}

TEST(InferShape, CallsAFunctionWithoutShowingData) {
  ToyRecord toy("t::half");
  toy.tensors({"x"});
  toy.result("out", "function", {});
  toy.shapes[0].fn = half;
  const auto op = toy.record();
  ToyTensor six({6}), five({5}), four({4}), two({2});
  six.handle.dl.data = &six;
  EXPECT_THAT(shape(*op, {six.value()}), ElementsAre(3));
  bp_status code = 0;
  error(*op, {five.value()}, &code);
  EXPECT_EQ(code, BP_ERROR_SHAPE);
  EXPECT_THAT(error(*op, {four.value()}), HasSubstr("negative size"));
  EXPECT_THAT(error(*op, {two.value()}), HasSubstr("65 dims"));
}

TEST(Pieces, CountsAndAxes) {
  const Ints vast = {int64_t{1} << 62, 4}, none = {int64_t{1} << 55, 4, 0}, beyond = {int64_t{1} << 62, 4, 0};
  EXPECT_THROW(checked_count(vast.data(), 2), Error);
  EXPECT_EQ(checked_count(none.data(), 3), 0);
  EXPECT_THROW(checked_count(beyond.data(), 3), Error);
  EXPECT_EQ(checked_count(nullptr, 0), 1);
  const auto op = op_with("same", {kTensor});
  EXPECT_EQ(normalize_axis(*op, -1, 3), 2);
  EXPECT_THROW(normalize_axis(*op, 0, 0), Error);
  EXPECT_THROW(normalize_axis(*op, INT64_MIN, 3), Error);
}

}  // namespace
}  // namespace backplane::core
