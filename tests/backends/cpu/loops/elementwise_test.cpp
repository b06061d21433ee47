// Elementwise kernels: every layout gives what a plain loop gives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>

#include "backends/cpu/fake_host.hpp"

namespace backplane::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<float> ramp(int64_t n, float from = -3, float step = 0.37f) {
  std::vector<float> values;
  for (int64_t i = 0; i < n; ++i) values.push_back(from + step * static_cast<float>(i % 1000));
  return values;
}

TEST(CpuPlugin, Registers) {
  ASSERT_TRUE(cpu().registered) << cpu().error;
  EXPECT_STREQ(cpu().backend.name, "cpu");
  EXPECT_GE(cpu().kernels.size(), 40u);
}

TEST(CpuElementwise, LayoutsAgree) {
  for (const int64_t n : {1, 3, 37, 100000}) {
    Array x = Array::of(ramp(n), {n}), y = Array::of(ramp(n, 1, 0.11f), {n});
    Array expected(BP_FLOAT32, {n}), flat(BP_FLOAT32, {n}), looped(BP_FLOAT32, {n});
    for (int64_t i = 0; i < n; ++i) expected.at<float>()[i] = x.at<float>()[i] - y.at<float>()[i];
    ASSERT_EQ(cpu().call("bp::subtract", {tensor(x), tensor(y)}, {tensor(flat)}, BP_FLOAT32, true), BP_OK);
    ASSERT_EQ(cpu().call("bp::subtract", {tensor(x), tensor(y)}, {tensor(looped)}, BP_FLOAT32), BP_OK);
    EXPECT_EQ(flat.values<float>(), expected.values<float>());
    EXPECT_EQ(looped.values<float>(), expected.values<float>());
  }
}

TEST(CpuElementwise, BroadcastsAndStrides) {
  Array x = Array::of(ramp(12), {3, 4}), y = Array::of<float>({10, 20, 30}, {3, 1});
  const Array columns = x.view({4, 3}, {1, 4});
  Array transposed(columns), out(BP_FLOAT32, {3, 4}), turned(BP_FLOAT32, {4, 3});
  ASSERT_EQ(cpu().call("bp::add", {tensor(x), tensor(y)}, {tensor(out)}, BP_FLOAT32), BP_OK);
  EXPECT_FLOAT_EQ(out.values<float>()[7], x.values<float>()[7] + 20);
  ASSERT_EQ(cpu().call("bp::add", {tensor(transposed), number(0.5)}, {tensor(turned)}, BP_FLOAT32), BP_OK);
  EXPECT_FLOAT_EQ(turned.values<float>()[5], x.values<float>()[9] + 0.5f);
}

TEST(CpuElementwise, OverOneOfTheOperands) {
  Array x = Array::of(ramp(1000), {1000});
  const std::vector<float> before = x.values<float>();
  ASSERT_EQ(cpu().call("bp::multiply", {tensor(x), tensor(x)}, {tensor(x)}, BP_FLOAT32, true), BP_OK);
  for (size_t i = 0; i < before.size(); ++i) EXPECT_EQ(x.values<float>()[i], before[i] * before[i]);
}

TEST(CpuElementwise, HalfFloatsRoundOnce) {
  using plugin::bfloat16;
  using plugin::float16;
  for (const int64_t n : {1, 700}) {
    Array x(BP_FLOAT16, {n}), out(BP_FLOAT16, {n}), less(BP_BOOL, {n}), brain(BP_BFLOAT16, {n}), sum(BP_BFLOAT16, {n});
    for (int64_t i = 0; i < n; ++i) {
      x.at<float16>()[i] = float16(0.01f * static_cast<float>(i));
      brain.at<bfloat16>()[i] = bfloat16(0.01f * static_cast<float>(i));
    }
    ASSERT_EQ(cpu().call("bp::exp", {tensor(x)}, {tensor(out)}, BP_FLOAT16, true), BP_OK);
    ASSERT_EQ(cpu().call("bp::add", {tensor(brain), number(1)}, {tensor(sum)}, BP_BFLOAT16, true), BP_OK);
    ASSERT_EQ(cpu().call("bp::less", {tensor(x), number(1)}, {tensor(less)}, BP_FLOAT16, true), BP_OK);
    for (int64_t i = 0; i < n; ++i) {
      const float value = x.at<float16>()[i];
      EXPECT_NEAR(static_cast<float>(out.at<float16>()[i]), std::exp(value), std::exp(value) / 1024);
      EXPECT_EQ(sum.at<bfloat16>()[i].bits, bfloat16(static_cast<float>(brain.at<bfloat16>()[i]) + 1).bits);
      EXPECT_EQ(less.at<uint8_t>()[i], value < 1);
    }
  }
}

TEST(CpuElementwise, IntegersDivideLikePython) {
  Array x = Array::of<int32_t>({7, -7, 7, -7, std::numeric_limits<int32_t>::min()}, {5});
  Array y = Array::of<int32_t>({2, 2, -2, -2, -1}, {5});
  Array quotient(BP_INT32, {5}), rest(BP_INT32, {5});
  ASSERT_EQ(cpu().call("bp::floor_divide", {tensor(x), tensor(y)}, {tensor(quotient)}, BP_INT32, true), BP_OK);
  ASSERT_EQ(cpu().call("bp::remainder", {tensor(x), tensor(y)}, {tensor(rest)}, BP_INT32, true), BP_OK);
  EXPECT_THAT(quotient.values<int32_t>(), ElementsAre(3, -4, -4, 3, std::numeric_limits<int32_t>::min()));
  EXPECT_THAT(rest.values<int32_t>(), ElementsAre(1, 1, -1, -1, 0));
}

TEST(CpuElementwise, AnIntegerDivisorOfZeroIsADataError) {
  Array x = Array::of<int64_t>({1, 2}, {2}), y = Array::of<int64_t>({1, 0}, {2}), out(BP_INT64, {2});
  EXPECT_EQ(cpu().call("bp::remainder", {tensor(x), tensor(y)}, {tensor(out)}, BP_INT64, true), BP_ERROR_DATA);
  EXPECT_THAT(cpu().error, HasSubstr("bp::remainder"));
  EXPECT_THAT(cpu().error, HasSubstr("divisor"));
}

TEST(CpuElementwise, WhereTakesANumberAnywhere) {
  Array condition = Array::of<bool>({true, false, true}, {3}), x = Array::of<double>({1, 2, 3}, {3}),
        out(BP_FLOAT64, {3});
  ASSERT_EQ(cpu().call("bp::where", {tensor(condition), tensor(x), number(-1)}, {tensor(out)}, BP_FLOAT64), BP_OK);
  EXPECT_THAT(out.values<double>(), ElementsAre(1, -1, 3));
}

TEST(CpuElementwise, MaximumKeepsNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Array x = Array::of<float>({nan, 1, 2}, {3}), y = Array::of<float>({1, nan, 1}, {3}), out(BP_FLOAT32, {3});
  ASSERT_EQ(cpu().call("bp::maximum", {tensor(x), tensor(y)}, {tensor(out)}, BP_FLOAT32, true), BP_OK);
  EXPECT_TRUE(std::isnan(out.values<float>()[0]));
  EXPECT_TRUE(std::isnan(out.values<float>()[1]));
  EXPECT_EQ(out.values<float>()[2], 2);
}

TEST(CpuCast, EveryPairKeepsSmallIntegers) {
  for (bp_dtype from = 0; from < BP_DTYPE_COUNT; ++from) {
    for (bp_dtype to = 0; to < BP_DTYPE_COUNT; ++to) {
      Array start = Array::of<int64_t>({0, 1, 0, 1}, {4}), x(from, {4}), y(to, {4}), back(BP_INT64, {4});
      ASSERT_EQ(cpu().call("bp::cast", {tensor(start)}, {tensor(x)}, BP_INT64, true), BP_OK);
      ASSERT_EQ(cpu().call("bp::cast", {tensor(x)}, {tensor(y)}, from), BP_OK);
      ASSERT_EQ(cpu().call("bp::cast", {tensor(y)}, {tensor(back)}, to, true), BP_OK);
      EXPECT_THAT(back.values<int64_t>(), ElementsAre(0, 1, 0, 1)) << from << " to " << to;
    }
  }
}

TEST(CpuCast, TruncatesTowardZeroAndTakesTheRealPart) {
  Array x = Array::of<double>({-1.9, 1.9, 300.5}, {3}), out(BP_INT16, {3});
  ASSERT_EQ(cpu().call("bp::cast", {tensor(x)}, {tensor(out)}, BP_FLOAT64, true), BP_OK);
  EXPECT_THAT(out.values<int16_t>(), ElementsAre(-1, 1, 300));
  Array z = Array::of<std::complex<float>>({{2, 5}}, {1}), real(BP_FLOAT32, {1});
  ASSERT_EQ(cpu().call("bp::cast", {tensor(z)}, {tensor(real)}, BP_COMPLEX64, true), BP_OK);
  EXPECT_THAT(real.values<float>(), ElementsAre(2));
}

TEST(CpuFill, FullAndIota) {
  Array out(BP_INT32, {5000}), sequence(BP_FLOAT32, {5});
  const Shape shape{5000};
  ASSERT_EQ(cpu().call("bp::full", {ints(shape), integer(7), absent(), absent()}, {tensor(out)}, BP_INT32), BP_OK);
  EXPECT_THAT(out.values<int32_t>(), ::testing::Each(7));
  ASSERT_EQ(cpu().call("bp::iota", {integer(5), number(1), number(-0.5)}, {tensor(sequence)}, BP_FLOAT32), BP_OK);
  EXPECT_THAT(sequence.values<float>(), ElementsAre(1, 0.5, 0, -0.5, -1));
}

}  // namespace
}  // namespace backplane::testing
