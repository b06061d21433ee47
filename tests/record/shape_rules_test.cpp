// The vocabulary of shape rules: shapes against NumPy's, views against brute-force index maps.
#include "record/shape_rules.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "record/toy_record.hpp"

namespace backplane::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The ops of these tests: a signature and the word that reads all of its arguments in order.
struct Param {
  uint16_t type;
  uint16_t flags = BP_ARG_OPTIONAL;
};
std::unique_ptr<OpRecord> op_with(const char* word, const std::vector<Param>& params) {
  static const char* const kNames[] = {"a", "b", "c", "d", "e", "f"};
  ToyRecord toy("t::op");
  std::vector<uint32_t> all;
  for (const Param& param : params) all.push_back(toy.arg(kNames[all.size()], param.type, param.flags));
  toy.promote = 0;
  if (std::string_view(word).starts_with("view.")) {
    toy.flags = BP_OP_VIEW;
    toy.alias = 0;
  }
  toy.result("out", word, all);
  return toy.record();
}

constexpr Param kTensor{BP_TYPE_TENSOR}, kTensors{BP_TYPE_TENSOR, BP_ARG_LIST | BP_ARG_OPTIONAL},
    kMaybeTensors{BP_TYPE_TENSOR, BP_ARG_LIST | BP_ARG_OPTIONAL | BP_ARG_OPTIONAL_ELEMENTS}, kAxis{BP_TYPE_AXIS},
    kAxes{BP_TYPE_AXES}, kShape{BP_TYPE_SHAPE}, kSize{BP_TYPE_SIZE}, kIndex{BP_TYPE_INDEX}, kBool{BP_TYPE_BOOL},
    kIndices{BP_TYPE_INDEX, BP_ARG_LIST | BP_ARG_OPTIONAL | BP_ARG_OPTIONAL_ELEMENTS};

struct Inferred {
  Ints sizes, strides;
  int64_t offset = 0;
  bool view = false;
  bp_dtype dtype = BP_DTYPE_NONE;
};
Inferred infer(const OpRecord& op, const std::vector<bp_value>& args) {
  ShapeResult out;
  infer_shape(op, args.data(), static_cast<int32_t>(args.size()), 0, out);
  Inferred result;
  result.sizes.assign(out.sizes, out.sizes + out.ndim);
  result.view = out.is_view;
  if (out.is_view) result.strides.assign(out.strides, out.strides + out.ndim);
  result.offset = out.byte_offset;
  result.dtype = out.view_dtype;
  return result;
}
Ints shape(const OpRecord& op, const std::vector<bp_value>& args) { return infer(op, args).sizes; }
std::string error(const OpRecord& op, const std::vector<bp_value>& args, bp_status* code = nullptr) {
  return error_of([&] { infer(op, args); }, code);
}

// Byte positions of all elements in row-major order.
std::vector<int64_t> positions(const Ints& sizes, const Ints& strides, int64_t offset, int64_t item) {
  std::vector<int64_t> all = {offset};
  for (size_t d = 0; d < sizes.size(); ++d) {
    std::vector<int64_t> next;
    for (int64_t at : all)
      for (int64_t i = 0; i < sizes[d]; ++i) next.push_back(at + i * strides[d] * item);
    all = std::move(next);
  }
  return all;
}
std::vector<int64_t> positions(const Inferred& r, int64_t item = 4) {
  return positions(r.sizes, r.strides, r.offset, item);
}

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
  EXPECT_THAT(error(*stack, {tensors_value(ab), int_value(0)}), HasSubstr("expected that of the first"));
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

TEST(Windows, PoolTakesItsKernelAsStride) {
  const auto op = op_with("pool", {kTensor, kShape, kShape, kShape});
  ToyTensor x({2, 3, 9, 8});
  const Ints two = {2}, mixed = {3, 2}, one = {1}, none = {};
  EXPECT_THAT(shape(*op, {x.value(), ints_value(two), {}, {}}), ElementsAre(2, 3, 4, 4));
  EXPECT_THAT(shape(*op, {x.value(), ints_value(mixed), ints_value(none), ints_value(one)}), ElementsAre(2, 3, 3, 5));
  EXPECT_THAT(shape(*op, {x.value(), ints_value(two), ints_value(one), {}}), ElementsAre(2, 3, 8, 7));
  EXPECT_NE(error(*op, {x.value(), ints_value(none), {}, {}}), "");
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

// ---- views: the elements seen, in order -------------------------------------------------------------------------

TEST(Views, PermuteSeesEachElementOnceInTheNewOrder) {
  const auto op = op_with("view.permute", {kTensor, kAxes});
  ToyTensor x({2, 3});
  const Ints swap = {1, 0}, negative = {-1, 0}, twice = {0, 0}, few = {0};
  EXPECT_THAT(positions(infer(*op, {x.value(), ints_value(swap)})), ElementsAre(0, 12, 4, 16, 8, 20));
  EXPECT_EQ(positions(infer(*op, {x.value(), ints_value(negative)})), positions(infer(*op, {x.value(), {}})));
  EXPECT_NE(error(*op, {x.value(), ints_value(twice)}), "");
  EXPECT_NE(error(*op, {x.value(), ints_value(few)}), "");
}

TEST(Views, ExpandRepeatsWithStrideZero) {
  const auto op = op_with("view.expand", {kTensor, kShape});
  ToyTensor x({3, 1});
  const Ints to = {2, 3, 2}, wrong = {3, 0, 2}, shorter = {3}, empty = {0, 3, 1};
  EXPECT_THAT(positions(infer(*op, {x.value(), ints_value(to)})), ElementsAre(0, 0, 4, 4, 8, 8, 0, 0, 4, 4, 8, 8));
  EXPECT_THAT(infer(*op, {x.value(), ints_value(empty)}).sizes, ElementsAre(0, 3, 1));
  EXPECT_NE(error(*op, {x.value(), ints_value(wrong)}), "");
  EXPECT_NE(error(*op, {x.value(), ints_value(shorter)}), "");
}

TEST(Views, SelectSqueezeUnsqueeze) {
  const auto select = op_with("view.select", {kTensor, kAxis, kIndex});
  ToyTensor x({2, 3});
  EXPECT_THAT(positions(infer(*select, {x.value(), int_value(1), int_value(-1)})), ElementsAre(8, 20));
  EXPECT_THAT(positions(infer(*select, {x.value(), int_value(0), int_value(1)})), ElementsAre(12, 16, 20));
  bp_status code = 0;
  EXPECT_THAT(error(*select, {x.value(), int_value(1), int_value(3)}, &code), HasSubstr("index 3 is out of range"));
  EXPECT_EQ(code, BP_ERROR_INDEX);
  EXPECT_NE(error(*select, {int_value(1, BP_VALUE_NUMBER), int_value(0), int_value(0)}), "");

  const auto squeeze = op_with("view.squeeze", {kTensor, kAxes});
  const auto unsqueeze = op_with("view.unsqueeze", {kTensor, kAxes});
  ToyTensor y({1, 3, 1});
  const Ints last = {-1}, middle = {1}, ends = {0, -1}, clash = {0, -4};
  EXPECT_THAT(shape(*squeeze, {y.value(), {}}), ElementsAre(3));
  EXPECT_THAT(shape(*squeeze, {y.value(), ints_value(last)}), ElementsAre(1, 3));
  EXPECT_NE(error(*squeeze, {y.value(), ints_value(middle)}), "");
  EXPECT_THAT(shape(*unsqueeze, {x.value(), ints_value(ends)}), ElementsAre(1, 2, 3, 1));
  EXPECT_THAT(positions(infer(*unsqueeze, {x.value(), ints_value(ends)})), ElementsAre(0, 4, 8, 12, 16, 20));
  EXPECT_THAT(shape(*unsqueeze, {x.value(), int_value(-1)}), ElementsAre(2, 3, 1));
  EXPECT_NE(error(*unsqueeze, {x.value(), ints_value(clash)}), "");
}

// Python's own slices as the oracle, restated: the indices i = start, start + step, ... that lie before stop.
Ints python_slice(int64_t size, std::optional<int64_t> start, std::optional<int64_t> stop, int64_t step) {
  Ints indices;
  const auto bound = [&](std::optional<int64_t> b, int64_t otherwise) {
    if (!b) return otherwise;
    int64_t at = *b < 0 ? *b + size : *b;
    return step > 0 ? std::min(std::max<int64_t>(at, 0), size) : std::min(std::max<int64_t>(at, -1), size - 1);
  };
  const int64_t end = bound(stop, step > 0 ? size : -1);
  for (int64_t i = bound(start, step > 0 ? 0 : size - 1); step > 0 ? i < end : i > end; i += step) indices.push_back(i);
  return indices;
}

TEST(Views, SliceIsPythons) {
  const auto op = op_with("view.slice", {kTensor, kAxes, kIndices, kIndices, kIndices});
  const Ints axis = {1};
  for (int64_t size : {0, 1, 5}) {
    ToyTensor x({2, size});
    std::vector<std::optional<int64_t>> bounds = {std::nullopt};
    for (int64_t b = -7; b <= 7; ++b) bounds.push_back(b);
    for (const auto& start : bounds)
      for (const auto& stop : bounds)
        for (int64_t step : {1, 2, 3, 9, -1, -2, -9}) {
          const std::vector<bp_value> starts = {start ? int_value(*start) : bp_value{}};
          const std::vector<bp_value> stops = {stop ? int_value(*stop) : bp_value{}};
          const Ints steps = {step};
          const Inferred seen =
              infer(*op, {x.value(), ints_value(axis), values_value(starts), values_value(stops), ints_value(steps)});
          std::vector<int64_t> expected;
          for (int64_t row = 0; row < 2; ++row)
            for (int64_t i : python_slice(size, start, stop, step)) expected.push_back((row * size + i) * 4);
          ASSERT_EQ(positions(seen), expected)
              << size << " " << start.value_or(-99) << " " << stop.value_or(-99) << " " << step;
        }
  }
}

TEST(Views, SliceSurvivesExtremeBounds) {
  const auto op = op_with("view.slice", {kTensor, kAxes, kIndices, kIndices, kIndices});
  ToyTensor x({4});
  const Ints axis = {0}, low = {INT64_MIN}, high = {INT64_MAX}, zero = {0};
  EXPECT_THAT(infer(*op, {x.value(), ints_value(axis), ints_value(low), ints_value(high), ints_value(high)}).sizes,
              ElementsAre(1));
  EXPECT_THAT(infer(*op, {x.value(), ints_value(axis), ints_value(high), ints_value(low), ints_value(low)}).sizes,
              ElementsAre(1));
  EXPECT_THAT(infer(*op, {x.value(), ints_value(axis), {}, {}, {}}).sizes, ElementsAre(4));
  EXPECT_NE(error(*op, {x.value(), ints_value(axis), {}, {}, ints_value(zero)}), "");
}

TEST(Views, DiagonalOfEachOffset) {
  const auto op = op_with("view.diagonal", {kTensor, kIndex, kAxis, kAxis});
  ToyTensor x({3, 4});
  for (int64_t offset = -5; offset <= 5; ++offset) {
    std::vector<int64_t> expected;
    for (int64_t r = 0; r < 3; ++r)
      if (r + offset >= 0 && r + offset < 4) expected.push_back((r * 4 + r + offset) * 4);
    EXPECT_EQ(positions(infer(*op, {x.value(), int_value(offset), int_value(0), int_value(1)})), expected) << offset;
  }
  EXPECT_THAT(shape(*op, {x.value(), int_value(INT64_MIN), int_value(0), int_value(1)}), ElementsAre(0));
  EXPECT_NE(error(*op, {x.value(), {}, int_value(1), int_value(-1)}), "");
}

TEST(Views, UnfoldSeesEachWindow) {
  const auto op = op_with("view.unfold", {kTensor, kAxis, kSize, kSize, kSize});
  ToyTensor x({2, 5});
  const Inferred seen = infer(*op, {x.value(), int_value(1), int_value(3), int_value(2), {}});
  EXPECT_THAT(seen.sizes, ElementsAre(2, 2, 3));
  EXPECT_THAT(positions(seen), ElementsAre(0, 4, 8, 8, 12, 16, 20, 24, 28, 28, 32, 36));
  EXPECT_THAT(shape(*op, {x.value(), int_value(0), int_value(2), int_value(1), {}}), ElementsAre(1, 5, 2));
  EXPECT_NE(error(*op, {x.value(), int_value(1), int_value(6), int_value(1), {}}), "");
  EXPECT_NE(error(*op, {x.value(), int_value(1), int_value(2), int_value(0), {}}), "");
  EXPECT_THAT(positions(infer(*op, {x.value(), int_value(1), int_value(2), int_value(1), int_value(3)})),
              ElementsAre(0, 12, 4, 16, 20, 32, 24, 36));
  EXPECT_NE(error(*op, {x.value(), int_value(1), int_value(3), int_value(1), int_value(INT64_MAX)}), "");
  EXPECT_NE(error(*op, {x.value(), int_value(1), int_value(2), int_value(1), int_value(0)}), "");
}

TEST(Views, RealAndImaginaryPartsInterleave) {
  const auto real = op_with("view.real", {kTensor});
  const auto imag = op_with("view.imag", {kTensor});
  ToyTensor z({3}, BP_COMPLEX64), x({3});
  EXPECT_THAT(positions(infer(*real, {z.value()})), ElementsAre(0, 8, 16));
  EXPECT_THAT(positions(infer(*imag, {z.value()})), ElementsAre(4, 12, 20));
  EXPECT_EQ(infer(*imag, {z.value()}).dtype, BP_FLOAT32);
  EXPECT_THAT(positions(infer(*real, {x.value()})), ElementsAre(0, 4, 8));
  EXPECT_NE(error(*imag, {x.value()}), "");
}

TEST(Reshape, InfersOneSizeAndRefusesTheRest) {
  const auto op = op_with("view.reshape", {kTensor, kShape});
  ToyTensor x({2, 6}), empty({0, 3});
  const auto of = [&](ToyTensor& t, Ints to) { return infer(*op, {t.value(), ints_value(to)}).sizes; };
  EXPECT_THAT(of(x, {3, -1}), ElementsAre(3, 4));
  EXPECT_THAT(of(x, {-1}), ElementsAre(12));
  EXPECT_THAT(of(x, {12, 1, -1}), ElementsAre(12, 1, 1));
  EXPECT_THAT(of(empty, {-1, 5}), ElementsAre(0, 5));
  EXPECT_THAT(of(empty, {0, 7}), ElementsAre(0, 7));
  EXPECT_THROW(of(x, {5, -1}), Error);
  EXPECT_THROW(of(x, {-1, -1}), Error);
  EXPECT_THROW(of(x, {-2, 6}), Error);
  EXPECT_THROW(of(x, {0, -1}), Error);
  EXPECT_THROW(of(empty, {0, -1}), Error);
  EXPECT_THROW(of(empty, {int64_t{1} << 32, int64_t{1} << 32}), Error);
  EXPECT_THAT(shape(*op, {int_value(3, BP_VALUE_NUMBER), ints_value({})}), ElementsAre());
}

// A reshape is a view exactly if one linear index map serves, and then it sees the elements in the same order.
TEST(Reshape, IsAViewExactlyWhereStridesAllow) {
  const auto op = op_with("view.reshape", {kTensor, kShape});
  std::mt19937 random(7);
  int views = 0, copies = 0;
  for (int round = 0; round < 4000; ++round) {
    // A permuted, partly expanded or stepped tensor of 1-24 elements.
    const std::vector<Ints> shapes = {{2, 3, 4}, {4, 6}, {24}, {2, 2, 2, 3}, {1, 24}, {3, 1, 8}, {2, 12, 1}, {6, 2, 2}};
    Ints sizes = shapes[random() % shapes.size()];
    Ints strides = ToyTensor::contiguous(sizes);
    for (size_t d = 0; d + 1 < sizes.size(); ++d)
      if (random() % 4 == 0) std::swap(sizes[d], sizes[d + 1]), std::swap(strides[d], strides[d + 1]);
    if (random() % 4 == 0)
      for (int64_t& s : strides) s *= 2;
    if (random() % 6 == 0) strides[random() % strides.size()] = 0;
    const Ints to = shapes[random() % shapes.size()];
    ToyTensor x(sizes, strides, 0);
    const Inferred seen = infer(*op, {x.value(), ints_value(to)});
    const auto expected = positions(sizes, strides, 0, 4);
    if (seen.view) {
      ++views;
      ASSERT_EQ(positions(seen), expected);
      continue;
    }
    ++copies;
    // No strides would do: those that the first steps along each axis ask for do not give all elements.
    Ints forced(to.size(), 0);
    int64_t step = 1;
    for (size_t d = to.size(); d-- > 0; step *= to[d])
      if (to[d] > 1) forced[d] = (expected[static_cast<size_t>(step)] - expected[0]) / 4;
    ASSERT_NE(positions(to, forced, 0, 4), expected);
  }
  EXPECT_GT(views, 500);
  EXPECT_GT(copies, 500);
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
