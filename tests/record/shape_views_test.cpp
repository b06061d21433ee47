// The shape rules of views, against brute-force index maps: the elements seen, in order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "record/shape_fixture.hpp"

namespace backplane::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

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

bp_value dtype_value(bp_dtype dtype) {
  bp_value v{};
  v.tag = BP_TAG_DTYPE;
  v.u.i = dtype;
  return v;
}

TEST(Views, BitsOfAnotherSizeLieAlongTheLastAxis) {
  const auto op = op_with("view.bitcast", {kTensor, Param{BP_TYPE_DTYPE}});
  ToyTensor x({2, 4});
  const Inferred same = infer(*op, {x.value(), dtype_value(BP_INT32)});
  EXPECT_THAT(same.sizes, ElementsAre(2, 4));
  EXPECT_EQ(same.dtype, BP_INT32);
  const Inferred narrow = infer(*op, {x.value(), dtype_value(BP_INT16)});
  EXPECT_THAT(narrow.sizes, ElementsAre(2, 8));
  EXPECT_THAT(narrow.strides, ElementsAre(8, 1));
  const Inferred wide = infer(*op, {x.value(), dtype_value(BP_FLOAT64)});
  EXPECT_THAT(wide.sizes, ElementsAre(2, 2));
  EXPECT_THAT(wide.strides, ElementsAre(2, 1));
  ToyTensor number({}), odd({3});
  EXPECT_NE(error(*op, {number.value(), dtype_value(BP_INT8)}), "");
  EXPECT_NE(error(*op, {odd.value(), dtype_value(BP_FLOAT64)}), "");
  EXPECT_NE(error(*op, {x.value(), dtype_value(BP_BOOL)}), "");
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

}  // namespace
}  // namespace backplane::core
