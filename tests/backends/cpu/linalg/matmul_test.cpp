// matmul over every layout, rank and dtype agrees with the sum of products.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>

#include "backends/cpu/fake_host.hpp"

namespace backplane::testing::matmul_test {
namespace {

template <class T>
T element(int64_t i) {
  return T(static_cast<plugin::Compute<T>>((i * 37) % 11 - 5));
}
template <class T>
Array filled(Shape shape) {
  Array array(kDtypeOf<T>, std::move(shape));
  for (int64_t i = 0; i < array.count(); ++i) array.at<T>()[i] = element<T>(i);
  return array;
}

template <class T>
void expect_product(Array x, Array y, Array out) {
  ASSERT_EQ(cpu().call("bp::matmul", {tensor(x), tensor(y)}, {tensor(out)}, kDtypeOf<T>), BP_OK) << cpu().error;
  const int64_t m = out.shape()[0], n = out.shape()[1], k = x.shape()[1];
  const std::vector<T> a = x.values<T>(), b = y.values<T>(), c = out.values<T>();
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      plugin::Compute<T> sum(0);
      for (int64_t l = 0; l < k; ++l)
        sum += plugin::Compute<T>(a[static_cast<size_t>(i * k + l)]) *
               plugin::Compute<T>(b[static_cast<size_t>(l * n + j)]);
      ASSERT_EQ(static_cast<plugin::Compute<T>>(c[static_cast<size_t>(i * n + j)]), plugin::Compute<T>(T(sum)))
          << i << "," << j;
    }
}

template <class T>
class CpuMatmul : public ::testing::Test {};
using Types = ::testing::Types<float, double, std::complex<float>, std::complex<double>, int8_t, int32_t, int64_t,
                               plugin::float16, plugin::bfloat16>;
TYPED_TEST_SUITE(CpuMatmul, Types);

TYPED_TEST(CpuMatmul, Layouts) {
  using T = TypeParam;
  for (const auto& [m, k, n] : {std::array<int64_t, 3>{3, 4, 5},
                                {1, 7, 1},
                                {4, 1, 1},
                                {1, 1, 6},
                                {3, 0, 2},
                                {20, 16, 33},
                                {1, 37, 6},
                                {400, 90, 1},
                                {70, 65, 90},
                                {7, 300, 601}}) {
    Array out(kDtypeOf<T>, {m, n});
    const Array x = filled<T>({m, k}), y = filled<T>({k, n}), xt = filled<T>({k, m}), yt = filled<T>({n, k});
    expect_product<T>(x, y, out);
    expect_product<T>(xt.view({m, k}, {1, m}), y, out);
    expect_product<T>(x, yt.view({k, n}, {1, k}), out);
    expect_product<T>(xt.view({m, k}, {1, m}), yt.view({k, n}, {1, k}), out);
    const Array wide = filled<T>({m, 2 * k});
    expect_product<T>(wide.view({m, k}, {2 * k, 2}), y, out);
    expect_product<T>(x.view({m, k}, {0, 1}), y, out);
    Array turned(kDtypeOf<T>, {n, m});
    expect_product<T>(x, y, turned.view({m, n}, {1, m}));
  }
}

// Every height of a block of rows, every number of vectors and every tail, by rows and transposed.
template <class T>
void expect_small_products() {
  for (int64_t m = 1; m <= 14; ++m)
    for (int64_t n = 1; n <= 35; ++n)
      for (int64_t k : {1, 5, 16}) {
        Array out(kDtypeOf<T>, {m, n});
        const Array x = filled<T>({m, k}), y = filled<T>({k, n}), xt = filled<T>({k, m}), yt = filled<T>({n, k});
        SCOPED_TRACE(::testing::Message() << m << " x " << k << " by " << n);
        ASSERT_NO_FATAL_FAILURE(expect_product<T>(x, y, out));
        ASSERT_NO_FATAL_FAILURE(expect_product<T>(xt.view({m, k}, {1, m}), yt.view({k, n}, {1, k}), out));
      }
}
TEST(CpuMatmulSmall, EverySizeOfBlocks) {
  expect_small_products<float>();
  expect_small_products<double>();
}
TEST(CpuMatmulSmall, WritesNothingBesideTheResult) {
  Array wide = filled<float>({9, 16}), out = wide.view({9, 11}, {16, 1});
  const Array x = filled<float>({9, 7}), y = filled<float>({7, 11});
  const std::vector<float> before = wide.values<float>();
  expect_product<float>(x, y, out);
  const std::vector<float> after = wide.values<float>();
  for (size_t i = 0; i < after.size(); ++i)
    if (i % 16 >= 11) {
      ASSERT_EQ(after[i], before[i]) << i;
    }
}

TEST(CpuMatmulStacks, BroadcastAndVectorsActAsRowsAndColumns) {
  Array x = filled<float>({2, 1, 3, 4}), y = filled<float>({5, 4, 2}), out(BP_FLOAT32, {2, 5, 3, 2});
  ASSERT_EQ(cpu().call("bp::matmul", {tensor(x), tensor(y)}, {tensor(out)}, BP_FLOAT32), BP_OK);
  const auto a = x.values<float>(), b = y.values<float>(), c = out.values<float>();
  for (size_t p = 0; p < 2; ++p)
    for (size_t q = 0; q < 5; ++q)
      for (size_t i = 0; i < 3; ++i)
        for (size_t j = 0; j < 2; ++j) {
          float sum = 0;
          for (size_t l = 0; l < 4; ++l) sum += a[p * 12 + i * 4 + l] * b[q * 8 + l * 2 + j];
          ASSERT_EQ(c[((p * 5 + q) * 3 + i) * 2 + j], sum);
        }
  Array row = filled<float>({4}), column(BP_FLOAT32, {2, 1, 3}), left(BP_FLOAT32, {5, 2}), dot(BP_FLOAT32, {});
  ASSERT_EQ(cpu().call("bp::matmul", {tensor(x), tensor(row)}, {tensor(column)}, BP_FLOAT32), BP_OK);
  ASSERT_EQ(cpu().call("bp::matmul", {tensor(row), tensor(y)}, {tensor(left)}, BP_FLOAT32), BP_OK);
  ASSERT_EQ(cpu().call("bp::matmul", {tensor(row), tensor(row)}, {tensor(dot)}, BP_FLOAT32), BP_OK);
  const auto v = row.values<float>();
  float squares = 0, first = 0, last = 0;
  for (size_t l = 0; l < 4; ++l) {
    squares += v[l] * v[l];
    first += a[l] * v[l];
    last += v[l] * b[4 * 8 + l * 2 + 1];
  }
  EXPECT_EQ(dot.values<float>()[0], squares);
  EXPECT_EQ(column.values<float>()[0], first);
  EXPECT_EQ(left.values<float>()[9], last);
}

}  // namespace
}  // namespace backplane::testing::matmul_test
