// Convolution, pooling, softmax and norms agree with their definitions; the convolution's gradients are its adjoints.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backends/cpu/fake_host.hpp"

namespace backplane::testing {
namespace {

using ::testing::ElementsAre;

template <class T>
Array varied(Shape shape, int64_t seed) {
  Array array(kDtypeOf<T>, std::move(shape));
  for (int64_t i = 0; i < array.count(); ++i)
    array.at<T>()[i] = T(static_cast<plugin::Compute<T>>(((i + seed) * 7919 % 103) / 51.0 - 1));
  return array;
}

struct ConvCase {
  Shape x, w, stride, padding, dilation;
  int64_t groups;
};
const ConvCase kCases[] = {
    {{2, 3, 8, 8}, {4, 3, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
    {{1, 4, 9, 7}, {6, 2, 3, 2}, {2, 1}, {1, 0}, {1, 2}, 2},
    {{3, 2, 5, 5}, {3, 2, 1, 1}, {1, 1}, {0, 0}, {1, 1}, 1},
    {{1, 1, 4, 4}, {1, 1, 2, 2}, {3, 3}, {4, 4}, {2, 2}, 1},
    {{20, 8, 16, 16}, {16, 8, 3, 3}, {2, 2}, {1, 1}, {1, 1}, 1},
};

Shape result_shape(const ConvCase& c) {
  Shape shape{c.x[0], c.w[0], 0, 0};
  for (size_t d = 0; d < 2; ++d)
    shape[d + 2] = (c.x[d + 2] + 2 * c.padding[d] - c.dilation[d] * (c.w[d + 2] - 1) - 1) / c.stride[d] + 1;
  return shape;
}

double direct(Array& x, Array& w, const ConvCase& c, int64_t n, int64_t o, int64_t oy, int64_t ox) {
  double sum = 0;
  const int64_t channels = c.w[1], first = o / (c.w[0] / c.groups) * channels;
  for (int64_t k = 0; k < channels; ++k)
    for (int64_t ky = 0; ky < c.w[2]; ++ky)
      for (int64_t kx = 0; kx < c.w[3]; ++kx) {
        const int64_t y = oy * c.stride[0] + ky * c.dilation[0] - c.padding[0];
        const int64_t z = ox * c.stride[1] + kx * c.dilation[1] - c.padding[1];
        if (y < 0 || y >= c.x[2] || z < 0 || z >= c.x[3]) continue;
        sum += x.at<double>()[((n * c.x[1] + first + k) * c.x[2] + y) * c.x[3] + z] *
               w.at<double>()[((o * channels + k) * c.w[2] + ky) * c.w[3] + kx];
      }
  return sum;
}

double dot(Array& a, Array& b) {
  double sum = 0;
  for (int64_t i = 0; i < a.count(); ++i) sum += a.at<double>()[i] * b.at<double>()[i];
  return sum;
}

TEST(CpuConv2d, IsItsDefinitionAndItsGradientsAreAdjoint) {
  for (const ConvCase& c : kCases) {
    const Shape shape = result_shape(c);
    Array x = varied<double>(c.x, 1), w = varied<double>(c.w, 5), y(BP_FLOAT64, shape), g = varied<double>(shape, 9);
    Array dx(BP_FLOAT64, c.x), dw(BP_FLOAT64, c.w);
    const std::vector<bp_value> options{ints(c.stride), ints(c.padding), ints(c.dilation), integer(c.groups)};
    const auto with = [&](std::vector<bp_value> args) {
      args.insert(args.end(), options.begin(), options.end());
      return args;
    };
    ASSERT_EQ(cpu().call("bp::conv2d", with({tensor(x), tensor(w)}), {tensor(y)}, BP_FLOAT64), BP_OK) << cpu().error;
    for (int64_t i = 0; i < y.count(); i += 7)
      ASSERT_NEAR(y.at<double>()[i],
                  direct(x, w, c, i / (shape[1] * shape[2] * shape[3]), i / (shape[2] * shape[3]) % shape[1],
                         i / shape[3] % shape[2], i % shape[3]),
                  1e-12);
    ASSERT_EQ(cpu().call("bp::conv2d_input_grad", with({tensor(g), tensor(w), ints(c.x)}), {tensor(dx)}, BP_FLOAT64),
              BP_OK);
    ASSERT_EQ(cpu().call("bp::conv2d_weight_grad", with({tensor(g), tensor(x), ints(c.w)}), {tensor(dw)}, BP_FLOAT64),
              BP_OK);
    const double product = dot(g, y);
    EXPECT_NEAR(dot(x, dx), product, 1e-9);
    EXPECT_NEAR(dot(w, dw), product, 1e-9);
  }
}

TEST(CpuPool2d, MaximaHavePositionsAndMeansCountPadding) {
  Array x = Array::of<float>({1, 5, 2, 0, 3, -1, 4, 9, -2}, {1, 1, 3, 3}), values(BP_FLOAT32, {1, 1, 2, 2});
  Array indices(BP_INT64, {1, 1, 2, 2}), mean(BP_FLOAT32, {1, 1, 2, 2});
  const Shape kernel{2, 2}, stride{2, 2}, padding{1, 1}, none{};
  ASSERT_EQ(cpu().call("bp::max_pool2d_with_indices", {tensor(x), ints(kernel), ints(stride), ints(padding)},
                       {tensor(values), tensor(indices)}, BP_FLOAT32),
            BP_OK);
  EXPECT_THAT(values.values<float>(), ElementsAre(1, 5, 4, 9));
  EXPECT_THAT(indices.values<int64_t>(), ElementsAre(0, 1, 6, 7));
  ASSERT_EQ(
      cpu().call("bp::avg_pool2d", {tensor(x), ints(kernel), ints(none), ints(padding)}, {tensor(mean)}, BP_FLOAT32),
      BP_OK);
  EXPECT_THAT(mean.values<float>(), ElementsAre(0.25, 1.75, 1, 2.25));
}

TEST(CpuSoftmax, SumsToOneAlongAnyAxis) {
  Array x = varied<float>({3, 1000, 4}, 3), out(BP_FLOAT32, {3, 1000, 4}), log(BP_FLOAT32, {3, 1000, 4}),
        half(BP_FLOAT16, {3, 1000, 4});
  x.at<float>()[5] = 300;  // must not overflow
  for (const int64_t axis : {0, 1, 2}) {
    const Shape axes{axis};
    ASSERT_EQ(cpu().call("bp::softmax", {tensor(x), ints(axes)}, {tensor(out)}, BP_FLOAT32), BP_OK);
    ASSERT_EQ(cpu().call("bp::log_softmax", {tensor(x), ints(axes)}, {tensor(log)}, BP_FLOAT32), BP_OK);
    std::vector<double> sums(12000, 0);
    for (int64_t i = 0; i < x.count(); ++i) {
      const int64_t at[3] = {i / 4000, i / 4 % 1000, i % 4};
      size_t group = 0;
      for (int64_t d = 0; d < 3; ++d)
        if (d != axis)
          group = group * static_cast<size_t>(x.shape()[static_cast<size_t>(d)]) + static_cast<size_t>(at[d]);
      sums[group] += out.at<float>()[i];
      EXPECT_NEAR(std::exp(log.at<float>()[i]), out.at<float>()[i], 2e-6);
    }
    for (int64_t g = 0; g < x.count() / x.shape()[static_cast<size_t>(axis)]; ++g)
      ASSERT_NEAR(sums[static_cast<size_t>(g)], 1, 1e-5);
  }
}

TEST(CpuSoftmax, CrossEntropyIsMinusTheLogProbability) {
  Array x = Array::of<float>({1, 2, 3, 1000, 0, 0}, {2, 3}), labels = Array::of<int32_t>({2, 1}, {2}),
        out(BP_FLOAT32, {2});
  ASSERT_EQ(cpu().call("bp::cross_entropy", {tensor(x), tensor(labels), integer(1)}, {tensor(out)}, BP_FLOAT32), BP_OK);
  EXPECT_NEAR(out.at<float>()[0], std::log(std::exp(-2.0) + std::exp(-1.0) + 1), 1e-6);
  EXPECT_FLOAT_EQ(out.at<float>()[1], 1000);
  labels.at<int32_t>()[0] = 3;
  EXPECT_EQ(cpu().call("bp::cross_entropy", {tensor(x), tensor(labels), integer(1)}, {tensor(out)}, BP_FLOAT32),
            BP_ERROR_DATA);
}

TEST(CpuNorm, LargeMeansCostNoDigits) {
  Array x = varied<float>({6, 5, 4}, 2), y(BP_FLOAT32, {6, 5, 4}), z(BP_FLOAT32, {6, 5, 4}), mean(BP_FLOAT32, {5}),
        var(BP_FLOAT32, {5});
  for (int64_t i = 0; i < x.count(); ++i) x.at<float>()[i] = std::round(x.at<float>()[i] * 8) + 100000;
  const Shape last{1, 2};
  ASSERT_EQ(
      cpu().call("bp::layer_norm", {tensor(x), absent(), absent(), ints(last), number(0)}, {tensor(y)}, BP_FLOAT32),
      BP_OK);
  ASSERT_EQ(cpu().call("bp::batch_norm", {tensor(x), absent(), absent(), number(0)},
                       {tensor(z), tensor(mean), tensor(var)}, BP_FLOAT32),
            BP_OK);
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < 20; ++i) {
    sum += y.at<float>()[i];
    squares += y.at<float>()[i] * y.at<float>()[i];
  }
  EXPECT_NEAR(sum, 0, 0.02);
  EXPECT_NEAR(squares, 20, 1e-3);
  sum = squares = 0;
  for (int64_t n = 0; n < 6; ++n)
    for (int64_t i = 0; i < 4; ++i) {
      sum += z.at<float>()[n * 20 + 8 + i];
      squares += z.at<float>()[n * 20 + 8 + i] * z.at<float>()[n * 20 + 8 + i];
    }
  EXPECT_NEAR(sum, 0, 0.03);
  EXPECT_NEAR(squares, 24, 1e-3);
}

}  // namespace
}  // namespace backplane::testing
