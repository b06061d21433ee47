// Reductions over any axes and layouts agree with plain loops in double; sums keep their accuracy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "backends/cpu/fake_host.hpp"

namespace backplane::testing {
namespace {

using ::testing::HasSubstr;

double value_at(int64_t i) { return static_cast<double>((i * 7919) % 101) / 16 - 3; }

// Every subset of three axes, over contiguous, transposed and broadcast tensors.
TEST(CpuReduce, AnyAxesAndLayouts) {
  const Shape shape{5, 300, 7};
  Array memory(BP_FLOAT32, shape);
  for (int64_t i = 0; i < memory.count(); ++i) memory.at<float>()[i] = static_cast<float>(value_at(i));
  const std::vector<Array> layouts{memory, memory.view({7, 300, 5}, {1, 7, 2100}), memory.view({4, 30, 6}, {0, 7, 1}),
                                   memory.view({5, 150, 7}, {2100, -14, 1}, 299 * 7)};
  for (Array x : layouts) {
    const std::vector<float> elements = x.values<float>();
    for (int mask = 0; mask < 8; ++mask) {
      Shape reduced, kept;
      for (int d = 0; d < 3; ++d)
        (mask >> d & 1 ? reduced : kept).push_back(mask >> d & 1 ? d : x.shape()[static_cast<size_t>(d)]);
      Array sum(BP_FLOAT32, kept), largest(BP_FLOAT32, kept), wide(BP_FLOAT64, kept);
      std::vector<double> sums(static_cast<size_t>(sum.count()), 0), maxima(sums.size(), -1e30);
      for (int64_t i = 0; i < x.count(); ++i) {
        const int64_t at[3] = {i / (x.shape()[1] * x.shape()[2]), i / x.shape()[2] % x.shape()[1], i % x.shape()[2]};
        size_t group = 0;
        for (size_t d = 0; d < 3; ++d)
          if ((mask >> d & 1) == 0) group = group * static_cast<size_t>(x.shape()[d]) + static_cast<size_t>(at[d]);
        sums[group] += elements[static_cast<size_t>(i)];
        maxima[group] = std::max<double>(maxima[group], elements[static_cast<size_t>(i)]);
      }
      ASSERT_EQ(cpu().call("bp::sum", {tensor(x)}, {tensor(sum)}, BP_FLOAT32, false, &reduced), BP_OK);
      ASSERT_EQ(cpu().call("bp::sum", {tensor(x)}, {tensor(wide)}, BP_FLOAT32, false, &reduced), BP_OK);
      ASSERT_EQ(cpu().call("bp::max", {tensor(x)}, {tensor(largest)}, BP_FLOAT32, false, &reduced), BP_OK);
      for (size_t g = 0; g < sums.size(); ++g) {  // the results are contiguous
        ASSERT_NEAR(sum.at<float>()[g], sums[g], 1e-5 * (std::abs(sums[g]) + 10)) << "axes " << mask;
        ASSERT_NEAR(wide.at<double>()[g], sums[g], 1e-9);
        ASSERT_EQ(largest.at<float>()[g], maxima[g]);
      }
    }
  }
}

TEST(CpuReduce, ALongSumIsAccurateInEveryDirection) {
  const int64_t n = 1 << 20;
  Array x(BP_FLOAT32, {n, 1}), half(BP_BFLOAT16, {n, 1}), out(BP_FLOAT32, {1}), all(BP_FLOAT32, {}),
      brain(BP_FLOAT32, {});
  for (int64_t i = 0; i < n; ++i) {
    x.at<float>()[i] = 0.1f;
    half.at<plugin::bfloat16>()[i] = plugin::bfloat16(0.5f);
  }
  const Shape rows{0}, both{0, 1};
  ASSERT_EQ(cpu().call("bp::sum", {tensor(x)}, {tensor(all)}, BP_FLOAT32, false, &both), BP_OK);
  ASSERT_EQ(cpu().call("bp::sum", {tensor(half)}, {tensor(brain)}, BP_BFLOAT16, false, &both), BP_OK);
  const double expected = static_cast<double>(0.1f) * static_cast<double>(n);
  EXPECT_NEAR(all.values<float>()[0], expected, expected * 2e-7);
  EXPECT_EQ(brain.values<float>()[0], 0.5f * static_cast<float>(n));
  // Along a kept inner axis the rows are added one by one; the error must not grow with their number there either.
  Array wide = x.view({n / 4, 4}, {4, 1}), columns(BP_FLOAT32, {4});
  ASSERT_EQ(cpu().call("bp::sum", {tensor(wide)}, {tensor(columns)}, BP_FLOAT32, false, &rows), BP_OK);
  for (const float sum : columns.values<float>()) EXPECT_NEAR(sum, expected / 4, expected * 1e-7);
}

TEST(CpuReduce, IntegersAddIn64BitsAndMeansDivide) {
  Array x = Array::of<int8_t>({100, 100, 100}, {3}), out(BP_INT64, {}), y = Array::of<double>({1, 2, 6}, {3}),
        mean(BP_FLOAT64, {});
  const Shape all{0};
  ASSERT_EQ(cpu().call("bp::sum", {tensor(x)}, {tensor(out)}, BP_INT8, false, &all), BP_OK);
  EXPECT_EQ(out.values<int64_t>()[0], 300);
  ASSERT_EQ(cpu().call("bp::mean", {tensor(y)}, {tensor(mean)}, BP_FLOAT64, false, &all), BP_OK);
  EXPECT_EQ(mean.values<double>()[0], 3);
}

// Wherever it stands: rows and columns are taken several at a time, by vectors, and a NaN among them must come through.
TEST(CpuReduce, ANaNOrAnInfinityDecidesAMaximum) {
  const int64_t rows = 21, columns = 37;
  for (const int axis : {0, 1})
    for (int64_t i = 0; i < rows * columns; ++i) {
      Array x(BP_FLOAT32, {rows, columns}), out(BP_FLOAT32, {axis == 0 ? columns : rows});
      for (int64_t j = 0; j < x.count(); ++j) x.at<float>()[j] = static_cast<float>(value_at(j));
      const auto place = static_cast<size_t>(axis == 0 ? i % columns : i / columns);
      const Shape axes{axis};
      for (const float decides : {NAN, INFINITY}) {
        x.at<float>()[i] = decides;
        ASSERT_EQ(cpu().call("bp::max", {tensor(x)}, {tensor(out)}, BP_FLOAT32, false, &axes), BP_OK);
        for (size_t k = 0; k < static_cast<size_t>(out.count()); ++k) {
          const float found = out.at<float>()[k];
          ASSERT_EQ(std::isnan(found), k == place && std::isnan(decides)) << "axis " << axis << ", element " << i;
          ASSERT_EQ(std::isinf(found), k == place && std::isinf(decides)) << "axis " << axis << ", element " << i;
        }
      }
    }
}

TEST(CpuReduce, OverNoElements) {
  Array x(BP_FLOAT32, {2, 0}), sum(BP_FLOAT32, {2}), all(BP_BOOL, {2});
  const Shape last{1};
  sum.at<float>()[0] = 5;
  ASSERT_EQ(cpu().call("bp::sum", {tensor(x)}, {tensor(sum)}, BP_FLOAT32, false, &last), BP_OK);
  ASSERT_EQ(cpu().call("bp::all", {tensor(x)}, {tensor(all)}, BP_FLOAT32, false, &last), BP_OK);
  EXPECT_EQ(sum.values<float>()[0], 0);
  EXPECT_EQ(all.values<uint8_t>()[1], 1);
  EXPECT_EQ(cpu().call("bp::max", {tensor(x)}, {tensor(sum)}, BP_FLOAT32, false, &last), BP_ERROR_VALUE);
  EXPECT_THAT(cpu().error, HasSubstr("no elements"));
}

}  // namespace
}  // namespace backplane::testing
