// Variances over every layout that the kernel knows agree with two passes in long double, for data that misleads a
// first guess of the mean, for lanes that are cut, and in every dtype.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backends/cpu/fake_host.hpp"

namespace backplane::testing {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double noise(int64_t i) { return static_cast<double>((i * 7919) % 1009) / 1009 - 0.5; }

struct Data {
  const char* name;
  double (*at)(int64_t i, int64_t n);
};
const Data kData[] = {
    {"noise", [](int64_t i, int64_t) { return noise(i); }},
    {"a slope", [](int64_t i, int64_t n) { return static_cast<double>(i) / static_cast<double>(n) * 1000; }},
    {"a far start", [](int64_t i, int64_t) { return (i < 64 ? 0 : 5000) + noise(i); }},
    {"a large mean", [](int64_t i, int64_t) { return 1000 + std::round(64 * noise(i)); }},
    {"one value", [](int64_t, int64_t) { return 3.0; }},
    {"small squares", [](int64_t i, int64_t) { return noise(i) * 1e-20; }},
    {"large squares", [](int64_t i, int64_t) { return noise(i) * 1e18; }},
    {"a NaN", [](int64_t i, int64_t n) { return i == n / 2 ? std::nan("") : noise(i); }},
    {"an infinity", [](int64_t i, int64_t n) { return i == n / 3 ? kInfinity : noise(i); }},
};

struct Extents {
  int64_t outer, n, inner;
};

// Lanes of n elements, `inner` apart, in `outer` blocks; each lane's data start elsewhere.
template <class T>
void expect_variances(const Data& data, int64_t outer, int64_t n, int64_t inner, double correction, double tolerance) {
  const Shape axis{1};
  Array x(kDtypeOf<T>, {outer, n, inner}), out(kDtypeOf<T>, {outer, inner});
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < inner; ++j)
        x.at<T>()[(o * n + i) * inner + j] = T(static_cast<plugin::Compute<T>>(data.at(i, n) * (1 + j % 3)));
  ASSERT_EQ(
      cpu().call("bp::var", {tensor(x), ints(axis), number(correction), boolean(false)}, {tensor(out)}, kDtypeOf<T>),
      BP_OK);
  for (int64_t lane = 0; lane < outer * inner; ++lane) {
    const T* first = x.at<T>() + lane / inner * n * inner + lane % inner;
    const auto at = [&](int64_t i) { return static_cast<double>(static_cast<plugin::Compute<T>>(first[i * inner])); };
    long double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; ++i) sum += at(i);
    const long double mean = sum / static_cast<long double>(n);
    for (int64_t i = 0; i < n; ++i) squares += (at(i) - mean) * (at(i) - mean);
    const auto expected = static_cast<double>(squares / (static_cast<long double>(n) - correction));
    const auto found = static_cast<double>(static_cast<plugin::Compute<T>>(out.at<T>()[lane]));
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(found)) << data.name << ", lane " << lane << ": " << found;
    } else if (expected < static_cast<double>(std::numeric_limits<plugin::Compute<T>>::max())) {
      EXPECT_NEAR(found, expected, tolerance * expected + 1e-44) << data.name << ", lane " << lane << " of " << n;
    }
  }
}

TEST(CpuVariance, OfMisleadingDataInEveryLayout) {
  for (const Data& data : kData)
    for (const auto& [outer, n, inner] :
         {Extents{3, 1, 1}, {3, 1003, 1}, {1, 300001, 1}, {2, 90, 3}, {2, 203, 530}, {1, 150001, 2}}) {
      expect_variances<float>(data, outer, n, inner, 0, 1e-6);
      expect_variances<double>(data, outer, n, inner, n > 1 ? 1 : 0, 1e-12);
    }
}

TEST(CpuVariance, OfHalfFloats) {
  for (const auto& [outer, n, inner] : {Extents{3, 1003, 1}, {2, 203, 37}}) {
    expect_variances<plugin::float16>(kData[0], outer, n, inner, 0, 1e-3);
    expect_variances<plugin::bfloat16>(kData[0], outer, n, inner, 0, 8e-3);
    expect_variances<plugin::bfloat16>(kData[2], outer, n, inner, 0, 8e-3);
  }
}

TEST(CpuVariance, OfNothingIsNaN) {
  const Shape axis{1};
  Array x(BP_FLOAT32, {2, 0}), out(BP_FLOAT32, {2});
  ASSERT_EQ(cpu().call("bp::var", {tensor(x), ints(axis), number(0), boolean(false)}, {tensor(out)}, BP_FLOAT32),
            BP_OK);
  for (const float v : out.values<float>()) EXPECT_TRUE(std::isnan(v));
}

}  // namespace
}  // namespace backplane::testing
