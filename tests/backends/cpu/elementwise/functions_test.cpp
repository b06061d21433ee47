// Vector functions are within 4 units in the last place of the C library's in a wider type, for every layout, and give
// its results for NaN, infinities, zeros and arguments outside their domain.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backends/cpu/fake_host.hpp"

namespace backplane::testing::functions_test {
namespace {

struct Function {
  const char* op;
  long double (*reference)(long double);
  double low, high;
};
long double sigmoid(long double x) { return 1 / (1 + std::exp(-x)); }
const Function kFunctions[] = {
    {"bp::exp", [](long double x) { return std::exp(x); }, -87, 88},
    {"bp::expm1", [](long double x) { return std::expm1(x); }, -10, 20},
    {"bp::log", [](long double x) { return std::log(x); }, 1e-30, 1e3},
    {"bp::log1p", [](long double x) { return std::log1p(x); }, -0.99, 1e3},
    {"bp::log2", [](long double x) { return std::log2(x); }, 1e-30, 1e3},
    {"bp::sin", [](long double x) { return std::sin(x); }, -200, 200},
    {"bp::cos", [](long double x) { return std::cos(x); }, -200, 200},
    {"bp::atan", [](long double x) { return std::atan(x); }, -50, 50},
    {"bp::tanh", [](long double x) { return std::tanh(x); }, -12, 12},
    {"bp::erf", [](long double x) { return std::erf(x); }, -5, 5},
    {"bp::sqrt", [](long double x) { return std::sqrt(x); }, 0, 1e6},
    {"bp::sigmoid", sigmoid, -30, 30},
};

template <class T>
void expect_close(const Function& f, T x, T found) {
  const T expected = static_cast<T>(f.reference(x));
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(found)) << f.op << "(" << x << ") = " << found;
  } else if (std::isinf(expected) || expected == 0) {
    EXPECT_EQ(found, expected) << f.op << "(" << x << ")";
  } else if (std::abs(expected) > std::numeric_limits<T>::min()) {
    const T unit = std::nextafter(std::abs(expected), std::numeric_limits<T>::infinity()) - std::abs(expected);
    // sin and cos are judged by 1 near their zeros, where the argument's own rounding decides.
    const T floor = std::abs(expected) < T(1e-3) && f.high == 200 ? std::numeric_limits<T>::epsilon() / 64 : T(0);
    EXPECT_LE(std::abs(found - expected), 4 * std::max(unit, floor)) << f.op << "(" << x << ") = " << found;
  }
}

template <class T>
class CpuFunctions : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(CpuFunctions, Types);

TYPED_TEST(CpuFunctions, AreAccurate) {
  using T = TypeParam;
  for (const Function& f : kFunctions) {
    const int64_t n = 4001;
    Array x(kDtypeOf<T>, {n}), out(kDtypeOf<T>, {n});
    for (int64_t i = 0; i < n; ++i)
      x.at<T>()[i] = static_cast<T>(f.low + (f.high - f.low) * static_cast<double>(i) / static_cast<double>(n - 1));
    ASSERT_EQ(cpu().call(f.op, {tensor(x)}, {tensor(out)}, kDtypeOf<T>, true), BP_OK);
    for (int64_t i = 0; i < n; ++i) expect_close<T>(f, x.at<T>()[i], out.at<T>()[i]);
    Array every_third = x.view({n / 3}, {3}), spread(kDtypeOf<T>, {n / 3 * 2});
    Array target = spread.view({n / 3}, {2});
    ASSERT_EQ(cpu().call(f.op, {tensor(every_third)}, {tensor(target)}, kDtypeOf<T>), BP_OK);
    for (int64_t i = 0; i < n / 3; ++i) ASSERT_EQ(target.at<T>()[2 * i], out.at<T>()[3 * i]);
  }
}

TYPED_TEST(CpuFunctions, FollowTheLibraryAtTheEdges) {
  using T = TypeParam;
  const T infinity = std::numeric_limits<T>::infinity();
  const std::vector<T> edges{std::numeric_limits<T>::quiet_NaN(),
                             infinity,
                             -infinity,
                             0,
                             T(-0.0),
                             1,
                             -1,
                             -2,
                             1000,
                             -1000,
                             std::numeric_limits<T>::max(),
                             std::numeric_limits<T>::lowest(),
                             T(1e6),
                             T(1e30),
                             sizeof(T) == 4 ? T(88.722839) : T(709.7827),
                             sizeof(T) == 4 ? T(88.8) : T(709.8)};
  Array x = Array::of<T>(edges, {static_cast<int64_t>(edges.size())}), out(x.dtype(), x.shape());
  for (const Function& f : kFunctions) {
    ASSERT_EQ(cpu().call(f.op, {tensor(x)}, {tensor(out)}, kDtypeOf<T>, true), BP_OK);
    for (size_t i = 0; i < edges.size(); ++i) expect_close<T>(f, edges[i], out.at<T>()[i]);
  }
}

// Of negative arguments all digits but the last few are kept, which 1 + erf would cancel; below -5.9 the result is 0.
TEST(CpuGelu, IsHalfTheArgumentTimesErfc) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> values{0, kInfinity, -100, 100, 1e30f, 1e-30f, -1e-30f, std::nanf("")};
  for (int i = -58000; i <= 100000; ++i) values.push_back(static_cast<float>(i) * 1e-4f);
  Array x = Array::of<float>(values, {static_cast<int64_t>(values.size())}), out(BP_FLOAT32, x.shape());
  ASSERT_EQ(cpu().call("bp::gelu", {tensor(x)}, {tensor(out)}, BP_FLOAT32, true), BP_OK);
  for (size_t i = 0; i < values.size(); ++i) {
    const double at = values[i], expected = 0.5 * at * std::erfc(-at * 0.70710678118654752440);
    if (std::isfinite(expected))
      ASSERT_NEAR(out.at<float>()[i], expected, std::abs(expected) * (at < 0 ? 2e-5 : 3e-7) + 1e-44) << at;
    else
      ASSERT_EQ(std::isnan(expected), std::isnan(out.at<float>()[i])) << at;
  }
  EXPECT_EQ(out.at<float>()[1], kInfinity);
}

// In float32; the C library serves float64.
TEST(CpuLgamma, IsTheLibrarysInAWiderType) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> values{0, 1, 2, -1, -2, -17, kInfinity, -kInfinity, 1e38f, -1e20f, 3e38f, 1e-40f, -1e-40f};
  for (int i = -20000; i <= 60000; ++i) values.push_back(static_cast<float>(i) * 1.001e-3f);
  for (int i = -300; i <= 300; ++i)
    for (const float zero : {1.0f, 2.0f}) values.push_back(zero + static_cast<float>(i) * 1e-6f);
  Array x = Array::of<float>(values, {static_cast<int64_t>(values.size())}), out(BP_FLOAT32, x.shape());
  ASSERT_EQ(cpu().call("bp::lgamma", {tensor(x)}, {tensor(out)}, BP_FLOAT32, true), BP_OK);
  for (size_t i = 0; i < values.size(); ++i) {
    const double expected = std::lgamma(static_cast<double>(values[i]));
    const auto rounded = static_cast<float>(expected);
    if (std::isinf(rounded))
      ASSERT_EQ(out.at<float>()[i], rounded) << values[i];
    else
      ASSERT_NEAR(out.at<float>()[i], expected, 3e-7 * std::abs(expected) + 1e-14) << values[i];
  }
}

}  // namespace
}  // namespace backplane::testing::functions_test
