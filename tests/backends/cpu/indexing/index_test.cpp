// Joining, indexing, sorting, scanning and random bits agree with plain loops, for strided operands too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "backends/cpu/fake_host.hpp"
#include "backplane/plugin/philox.hpp"

namespace backplane::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Array counting(Shape shape) {
  Array array(BP_INT32, std::move(shape));
  for (int64_t i = 0; i < array.count(); ++i) array.at<int32_t>()[i] = static_cast<int32_t>(i);
  return array;
}

bp_value tensors(const std::vector<bp_tensor*>& list) {
  bp_value value{};
  value.tag = BP_TAG_TENSOR_LIST;
  value.count = static_cast<uint32_t>(list.size());
  value.u.tensors = list.data();
  return value;
}

TEST(CpuJoin, ConcatAlongEveryAxis) {
  Array x = counting({2, 3}), turned = counting({3, 2}).view({2, 3}, {1, 2});
  Array rows(BP_INT32, {4, 3}), columns(BP_INT32, {2, 6});
  const std::vector<bp_tensor*> list{x.handle(), turned.handle()};
  ASSERT_EQ(cpu().call("bp::concat", {tensors(list), integer(0)}, {tensor(rows)}, BP_INT32), BP_OK);
  ASSERT_EQ(cpu().call("bp::concat", {tensors(list), integer(1)}, {tensor(columns)}, BP_INT32), BP_OK);
  EXPECT_THAT(rows.values<int32_t>(), ElementsAre(0, 1, 2, 3, 4, 5, 0, 2, 4, 1, 3, 5));
  EXPECT_THAT(columns.values<int32_t>(), ElementsAre(0, 1, 2, 0, 2, 4, 3, 4, 5, 1, 3, 5));
}

TEST(CpuJoin, SlicePutWritesAPieceByStartCountAndStep) {
  Array x = counting({2, 6}), value = Array::of<int32_t>({-1, -2, -3}, {3}), out(BP_INT32, {2, 6});
  const Shape axes{1}, starts{5}, counts{3}, steps{-2};
  ASSERT_EQ(cpu().call("bp::slice_put", {tensor(x), tensor(value), ints(axes), ints(starts), ints(counts), ints(steps)},
                       {tensor(out)}, BP_INT32),
            BP_OK);
  EXPECT_THAT(out.values<int32_t>(), ElementsAre(0, -3, 2, -2, 4, -1, 6, -3, 8, -2, 10, -1));
}

TEST(CpuJoin, SlicePutTakesNumbers) {
  Array x = counting({2, 3}), out(BP_INT32, {2, 3});
  const Shape axes{1}, starts{0}, counts{2}, steps{2};
  ASSERT_EQ(cpu().call("bp::slice_put", {tensor(x), integer(7), ints(axes), ints(starts), ints(counts), ints(steps)},
                       {tensor(out)}, BP_INT32),
            BP_OK);
  EXPECT_THAT(out.values<int32_t>(), ElementsAre(7, 1, 7, 7, 4, 7));
}

TEST(CpuJoin, SlicePutWritesWhereAnOperandLies) {
  Array x = counting({4}), value = Array::of<int32_t>({10, 20, 30, 40}, {4}), both = counting({4});
  const Shape axes{0}, starts{3}, counts{4}, steps{-1}, first{0}, two{2}, one{1};
  const auto put = [](Array& to, Array& from, const Shape& axes, const Shape& starts, const Shape& counts,
                      const Shape& steps, Array& out) {
    return cpu().call("bp::slice_put", {tensor(to), tensor(from), ints(axes), ints(starts), ints(counts), ints(steps)},
                      {tensor(out)}, BP_INT32);
  };
  Array pair = Array::of<int32_t>({-1, -2}, {2});
  ASSERT_EQ(put(x, pair, axes, first, two, one, x), BP_OK);
  EXPECT_THAT(x.values<int32_t>(), ElementsAre(-1, -2, 2, 3));
  ASSERT_EQ(put(x, value, axes, starts, counts, steps, value), BP_OK);
  EXPECT_THAT(value.values<int32_t>(), ElementsAre(40, 30, 20, 10));
  ASSERT_EQ(put(both, both, axes, starts, counts, steps, both), BP_OK);
  EXPECT_THAT(both.values<int32_t>(), ElementsAre(3, 2, 1, 0));
}

TEST(CpuIndex, PutsAddAndReadsUndoThem) {
  Array x = counting({4, 3}), at = Array::of<int64_t>({2, 0, 2}, {3}),
        values = Array::of<int32_t>({10, 20, 30}, {3, 1});
  Array last(BP_INT32, {4, 3}), sum(BP_INT32, {4, 3}), back(BP_INT32, {3, 3});
  ASSERT_EQ(cpu().call("bp::take_put", {tensor(x), tensor(at), tensor(values), integer(0), boolean(false)},
                       {tensor(last)}, BP_INT32),
            BP_OK);
  ASSERT_EQ(cpu().call("bp::take_put", {tensor(x), tensor(at), tensor(values), integer(0), boolean(true)},
                       {tensor(sum)}, BP_INT32),
            BP_OK);
  EXPECT_THAT(last.values<int32_t>(), ElementsAre(20, 20, 20, 3, 4, 5, 30, 30, 30, 9, 10, 11));
  EXPECT_THAT(sum.values<int32_t>(), ElementsAre(20, 21, 22, 3, 4, 5, 46, 47, 48, 9, 10, 11));
  ASSERT_EQ(cpu().call("bp::take", {tensor(last), tensor(at), integer(0)}, {tensor(back)}, BP_INT32), BP_OK);
  EXPECT_THAT(back.values<int32_t>(), ElementsAre(30, 30, 30, 20, 20, 20, 30, 30, 30));
}

TEST(CpuIndex, OutOfRangeIsADataError) {
  Array x = counting({3}), at = Array::of<int64_t>({3}, {1}), out(BP_INT32, {1});
  EXPECT_EQ(cpu().call("bp::take", {tensor(x), tensor(at), integer(0)}, {tensor(out)}, BP_INT32), BP_ERROR_DATA);
  EXPECT_THAT(cpu().error, HasSubstr("index 3 is out of range"));
  EXPECT_EQ(cpu().call("bp::take_along_axis", {tensor(x), tensor(at), integer(0)}, {tensor(out)}, BP_INT32),
            BP_ERROR_DATA);
}

// Elements are read by vectors up to the first index that is not a position yet, wherever it stands.
TEST(CpuIndex, TakesElementsOfEverySizeAroundNegativeIndices) {
  const int64_t size = 10000, count = 1200;
  for (const bp_dtype dtype : {BP_INT8, BP_INT16, BP_INT32, BP_INT64})
    for (const int64_t negative : {int64_t{-1}, int64_t{0}, int64_t{31}, int64_t{32}, int64_t{600}, count - 1}) {
      Array x(dtype, {size}), at(BP_INT64, {count}), out(dtype, {count});
      const int64_t item = plugin::kItemSize[dtype];
      for (int64_t i = 0; i < size * item; ++i) x.at<uint8_t>()[i] = static_cast<uint8_t>(i * 31 + i / 256);
      for (int64_t i = 0; i < count; ++i)
        at.at<int64_t>()[i] = i == negative ? -1 - i : i % 3 == 0 ? size - 1 - i : i * 7919 % size;
      ASSERT_EQ(cpu().call("bp::take", {tensor(x), tensor(at), integer(0)}, {tensor(out)}, dtype), BP_OK);
      for (int64_t i = 0; i < count; ++i) {
        const int64_t p = at.at<int64_t>()[i] + (i == negative ? size : 0);
        ASSERT_EQ(std::memcmp(out.at<char>() + i * item, x.at<char>() + p * item, static_cast<size_t>(item)), 0) << i;
      }
      for (const int64_t outside : {size, -size - 1, std::numeric_limits<int64_t>::min()}) {
        at.at<int64_t>()[count / 2 + 5] = outside;
        EXPECT_EQ(cpu().call("bp::take", {tensor(x), tensor(at), integer(0)}, {tensor(out)}, dtype), BP_ERROR_DATA);
        EXPECT_THAT(cpu().error, HasSubstr("index " + std::to_string(outside)));
      }
    }
}

TEST(CpuAlongAxis, TakesAndPutsWithBroadcastAxes) {
  Array x = counting({2, 3}), at = Array::of<int64_t>({2, 0}, {1, 2}), out(BP_INT32, {2, 2}), put(BP_INT32, {2, 3});
  ASSERT_EQ(cpu().call("bp::take_along_axis", {tensor(x), tensor(at), integer(1)}, {tensor(out)}, BP_INT32), BP_OK);
  EXPECT_THAT(out.values<int32_t>(), ElementsAre(2, 0, 5, 3));
  ASSERT_EQ(cpu().call("bp::put_along_axis", {tensor(x), tensor(at), tensor(out), integer(1), boolean(true)},
                       {tensor(put)}, BP_INT32),
            BP_OK);
  EXPECT_THAT(put.values<int32_t>(), ElementsAre(0, 1, 4, 6, 4, 10));
}

// Wide tensors are walked by rows and in blocks, whichever the axis; later values still meet what earlier ones left.
TEST(CpuAlongAxis, PutsAlongEveryAxisOfAWideTensor) {
  const Shape shape{3, 4, 300};
  for (const int axis : {0, 1, 2})
    for (const bool add : {false, true})
      for (const bool broadcast : {false, true}) {
        Shape places = shape, given = shape;
        places[static_cast<size_t>(axis)] = given[static_cast<size_t>(axis)] = 7;
        if (broadcast) places[axis == 2 ? 0 : 2] = 1;
        Array x = counting(shape), at(BP_INT64, places), out(BP_INT32, shape);
        Array values = counting(given);
        const int64_t size = shape[static_cast<size_t>(axis)];
        for (int64_t i = 0; i < at.count(); ++i) at.at<int64_t>()[i] = i * 7919 % (2 * size) - size;
        std::vector<int32_t> expected = x.values<int32_t>();
        const std::vector<int64_t> positions = at.values<int64_t>();
        for (int64_t i = 0; i < values.count(); ++i) {
          int64_t rest = i, index = 0, target = 0, index_step = 1, step = 1;
          for (size_t d = 3; d-- > 0;) {
            const int64_t place = rest % given[d];
            rest /= given[d];
            if (places[d] > 1) index += place * index_step;
            if (static_cast<int>(d) != axis) target += place * step;
            index_step *= places[d];
            step *= shape[d];
          }
          const int64_t p = positions[static_cast<size_t>(index)];
          const int64_t apart = axis == 0 ? 1200 : axis == 1 ? 300 : 1;
          int32_t& met = expected[static_cast<size_t>(target + (p < 0 ? p + size : p) * apart)];
          met = (add ? met : 0) + values.at<int32_t>()[i];
        }
        ASSERT_EQ(cpu().call("bp::put_along_axis", {tensor(x), tensor(at), tensor(values), integer(axis), boolean(add)},
                             {tensor(out)}, BP_INT32),
                  BP_OK);
        EXPECT_EQ(out.values<int32_t>(), expected) << "axis " << axis << (add ? ", added" : "");
        at.at<int64_t>()[at.count() - 1] = size;
        EXPECT_EQ(cpu().call("bp::put_along_axis", {tensor(x), tensor(at), tensor(values), integer(axis), boolean(add)},
                             {tensor(out)}, BP_INT32),
                  BP_ERROR_DATA);
      }
}

TEST(CpuAlongAxis, ArgwhereAllocatesItsResult) {
  Array x = Array::of<int32_t>({0, 5, 0, 0, 0, -1}, {2, 3});
  bp_value none{};
  ASSERT_EQ(cpu().call("bp::argwhere", {tensor(x)}, {none}, BP_INT32), BP_OK);
  Array& out = cpu().allocated.back();
  EXPECT_THAT(out.shape(), ElementsAre(2, 2));
  EXPECT_THAT(out.values<int64_t>(), ElementsAre(0, 1, 1, 2));
}

TEST(CpuSort, StableWithNanLast) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Array x = Array::of<float>({2, nan, 1, 2, -1}, {5}), up(BP_INT64, {5}), down(BP_INT64, {5});
  ASSERT_EQ(cpu().call("bp::argsort", {tensor(x), integer(0), boolean(false), boolean(true)}, {tensor(up)}, BP_FLOAT32),
            BP_OK);
  ASSERT_EQ(
      cpu().call("bp::argsort", {tensor(x), integer(0), boolean(true), boolean(true)}, {tensor(down)}, BP_FLOAT32),
      BP_OK);
  EXPECT_THAT(up.values<int64_t>(), ElementsAre(4, 2, 0, 3, 1));
  EXPECT_THAT(down.values<int64_t>(), ElementsAre(1, 0, 3, 2, 4));
  Array columns = counting({3, 2}).view({2, 3}, {1, -2}, 4), sorted(BP_INT32, {2, 3});
  ASSERT_EQ(
      cpu().call("bp::sort", {tensor(columns), integer(1), boolean(false), boolean(true)}, {tensor(sorted)}, BP_INT32),
      BP_OK);
  EXPECT_THAT(sorted.values<int32_t>(), ElementsAre(0, 2, 4, 1, 3, 5));
}

TEST(CpuScan, AlongAnyAxisAndFirstOfEquals) {
  Array x = counting({2, 3}), rows(BP_INT64, {2, 3}), columns(BP_INT64, {2, 3}), flat(BP_INT64, {}),
        along(BP_INT64, {3});
  ASSERT_EQ(cpu().call("bp::cumsum", {tensor(x), integer(1), absent()}, {tensor(rows)}, BP_INT32), BP_OK);
  ASSERT_EQ(cpu().call("bp::cumsum", {tensor(x), integer(0), absent()}, {tensor(columns)}, BP_INT32), BP_OK);
  EXPECT_THAT(rows.values<int64_t>(), ElementsAre(0, 1, 3, 3, 7, 12));
  EXPECT_THAT(columns.values<int64_t>(), ElementsAre(0, 1, 2, 3, 5, 7));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Array y = Array::of<float>({1, 7, 3, 7, nan, 7}, {2, 3});
  ASSERT_EQ(cpu().call("bp::argmax", {tensor(y), absent(), boolean(false)}, {tensor(flat)}, BP_FLOAT32), BP_OK);
  ASSERT_EQ(cpu().call("bp::argmin", {tensor(y), integer(0), boolean(false)}, {tensor(along)}, BP_FLOAT32), BP_OK);
  EXPECT_EQ(flat.values<int64_t>()[0], 4);
  EXPECT_THAT(along.values<int64_t>(), ElementsAre(0, 1, 0));
}

// The known answer of Random123's kat_vectors for Philox 4x32-10 with counter and key 0.
TEST(CpuRandom, KnownAnswerAndAnyPieceAlone) {
  bp_generator_state state{0, 0};
  bp_value generator{};
  generator.tag = BP_TAG_GENERATOR;
  generator.u.g = &state;
  Array out(BP_UINT32, {100003}), wide(BP_UINT64, {2});
  ASSERT_EQ(cpu().call("bp::random_bits", {absent(), absent(), absent(), generator}, {tensor(out)}, BP_UINT32), BP_OK);
  ASSERT_EQ(cpu().call("bp::random_bits", {absent(), absent(), absent(), generator}, {tensor(wide)}, BP_UINT64), BP_OK);
  const uint32_t* words = out.at<uint32_t>();
  EXPECT_EQ(words[0], 0x6627e8d5u);
  EXPECT_EQ(words[1], 0xe169c58du);
  EXPECT_EQ(words[2], 0xbc57ac4cu);
  EXPECT_EQ(words[3], 0x9b00dbd8u);
  EXPECT_EQ(wide.at<uint64_t>()[0], 0xe169c58d6627e8d5u);
  state.counter = 25000;
  Array tail(BP_UINT32, {3});
  ASSERT_EQ(cpu().call("bp::random_bits", {absent(), absent(), absent(), generator}, {tensor(tail)}, BP_UINT32), BP_OK);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(tail.at<uint32_t>()[i], words[100000 + i]);
}

// Words from vectors of blocks, and from blocks one by one, around the counters whose halves go round.
TEST(CpuRandom, VectorsOfBlocksAreTheBlocks) {
  bp_generator_state state{0x123456789abcdef0u, 0};
  bp_value generator{};
  generator.tag = BP_TAG_GENERATOR;
  generator.u.g = &state;
  for (const uint64_t counter : {uint64_t{0}, (uint64_t{1} << 32) - 9, ~uint64_t{0} - 5, uint64_t{3} << 33})
    for (const int64_t n : {1, 5, 127, 128, 129, 500, 777}) {
      state.counter = counter;
      Array out(BP_UINT32, {n});
      ASSERT_EQ(cpu().call("bp::random_bits", {absent(), absent(), absent(), generator}, {tensor(out)}, BP_UINT32),
                BP_OK);
      for (int64_t i = 0; i < n; ++i)
        ASSERT_EQ(out.at<uint32_t>()[i],
                  plugin::philox(state.key, counter + static_cast<uint64_t>(i / 4))[static_cast<size_t>(i % 4)])
            << "word " << i << " of " << n << " from " << counter;
    }
}

}  // namespace
}  // namespace backplane::testing
