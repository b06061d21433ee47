// Every vector function is within 4 units in the last place of the C library's in long double, over all exponents of
// both signs, special values among them. The largest errors found are the table of docs/reference/accuracy.md:
//
//   BACKPLANE_ACCURACY_STRIDE=1009 BACKPLANE_ACCURACY_TABLE=table.md test_backends_cpu --gtest_filter='Accuracy*'
//
// The stride is the distance of two float32 arguments as integers; the test's own is 100003.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "backends/cpu/fake_host.hpp"

namespace backplane::testing::accuracy_test {
namespace {

using Wide = long double;
struct Unary {
  const char* op;
  Wide (*reference)(Wide);
};
#define UNARY(name)                                           \
  {                                                           \
    "bp::" #name, [](Wide x) -> Wide { return std::name(x); } \
  }
const Unary kUnary[] = {
    UNARY(exp),   UNARY(exp2),  UNARY(expm1), UNARY(log),  UNARY(log2), UNARY(log10), UNARY(log1p), UNARY(sin),
    UNARY(cos),   UNARY(tan),   UNARY(asin),  UNARY(acos), UNARY(atan), UNARY(sinh),  UNARY(cosh),  UNARY(tanh),
    UNARY(asinh), UNARY(acosh), UNARY(atanh), UNARY(erf),  UNARY(erfc), UNARY(cbrt),  UNARY(sqrt),
};
#undef UNARY
struct Binary {
  const char* op;
  Wide (*reference)(Wide, Wide);
  bool exact;
};
const Binary kBinary[] = {
    {"bp::pow", [](Wide x, Wide y) -> Wide { return std::pow(x, y); }, false},
    {"bp::atan2", [](Wide x, Wide y) -> Wide { return std::atan2(x, y); }, false},
    {"bp::hypot", [](Wide x, Wide y) -> Wide { return std::hypot(x, y); }, false},
    {"bp::fmod", [](Wide x, Wide y) -> Wide { return std::fmod(x, y); }, true},
};

// |found - expected| in units in the last place of the expected value in T; huge where one is special and the other
// not.
template <class T>
double error_in_units(T found, Wide expected) {
  constexpr double kHuge = 1e30;
  const T rounded = static_cast<T>(expected);
  if (std::isnan(rounded) || std::isnan(found)) return std::isnan(rounded) == std::isnan(found) ? 0 : kHuge;
  if (std::isinf(rounded) && std::isinf(found)) return rounded == found ? 0 : kHuge;
  if (std::isinf(rounded) || std::isinf(found)) {  // the last finite value stands next to infinity
    const T finite = std::isinf(rounded) ? found : rounded, other = std::isinf(rounded) ? rounded : found;
    return finite == std::copysign(std::numeric_limits<T>::max(), other) ? 1 : kHuge;
  }
  if (rounded == 0 && found == 0) return std::signbit(rounded) == std::signbit(found) ? 0 : kHuge;
  int exponent;
  std::frexp(expected, &exponent);
  exponent = std::max(exponent, std::numeric_limits<T>::min_exponent);
  return static_cast<double>(std::abs(static_cast<Wide>(found) - expected) /
                             std::ldexp(Wide{1}, exponent - std::numeric_limits<T>::digits));
}

template <class T>
std::vector<T> special_values() {
  using L = std::numeric_limits<T>;
  std::vector<T> found;
  for (const T value : {T(0), L::denorm_min(), L::min(), L::max(), L::infinity(), L::epsilon(), T(0.5), T(1), T(2),
                        T(3), T(1.5707963267948966), T(88.72284), T(709.7827), T(88.8), T(30001), T(1e10)})
    found.insert(found.end(), {value, -value, std::nextafter(value, L::infinity())});
  found.push_back(L::quiet_NaN());
  return found;
}

int64_t stride() {
  const char* stated = std::getenv("BACKPLANE_ACCURACY_STRIDE");
  return stated == nullptr ? 100003 : std::max(std::atoll(stated), 1LL);
}

// Bit patterns at equal distances, then as many values of ordinary size.
template <class T>
std::vector<T> arguments(uint64_t seed) {
  std::vector<T> found = special_values<T>();
  std::mt19937_64 random(seed);
  const int64_t count = (int64_t{1} << 32) / stride();
  for (int64_t i = 0; i < count; ++i) {
    T value;
    if constexpr (sizeof(T) == 4) {
      const auto bits = static_cast<uint32_t>(i * stride() + static_cast<int64_t>(random() % 7));
      std::memcpy(&value, &bits, sizeof(T));
    } else {
      const uint64_t bits = random();
      std::memcpy(&value, &bits, sizeof(T));
    }
    found.push_back(value);
  }
  std::uniform_real_distribution<double> ordinary(-8, 8), unit(-1, 1);
  for (int64_t i = 0; i < count; ++i) found.push_back(static_cast<T>(ordinary(random)));
  for (int64_t i = 0; i < count; ++i)
    found.push_back(static_cast<T>(std::ldexp(unit(random), -static_cast<int>(random() % 40))));
  return found;
}

// Pairs whose powers are anywhere, of bases at every distance from 1: there the digits of the logarithm count most.
template <class T>
void append_powers(std::vector<T>& bases, std::vector<T>& exponents) {
  using L = std::numeric_limits<T>;
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> unit(-1, 1);
  const int64_t count = (int64_t{1} << 33) / stride();
  for (int64_t i = 0; i < count; ++i) {
    const T base = static_cast<T>(1 + std::ldexp(unit(random), -static_cast<int>(random() % (L::digits - 1))));
    const double power = unit(random) * L::max_exponent;
    if (base == 1 || base <= 0) continue;
    bases.push_back(base);
    exponents.push_back(static_cast<T>(power / std::log2(static_cast<double>(base))));
  }
}

// op -> the largest errors in float32 and float64.
std::map<std::string, std::pair<double, double>>& largest_errors() {
  static std::map<std::string, std::pair<double, double>> found;
  return found;
}
template <class T>
void record(const std::string& op, double error) {
  auto& [single, wide] = largest_errors()[op.substr(4)];
  (sizeof(T) == 4 ? single : wide) = error;
}

template <class T>
class Accuracy : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Accuracy, Types);

TYPED_TEST(Accuracy, OfOneOperand) {
  using T = TypeParam;
  const std::vector<T> values = arguments<T>(1);
  const auto n = static_cast<int64_t>(values.size());
  Array x = Array::of<T>(values, {n}), out(x.dtype(), {n});
  for (const Unary& f : kUnary) {
    ASSERT_EQ(cpu().call(f.op, {tensor(x)}, {tensor(out)}, x.dtype(), true), BP_OK);
    double worst = 0;
    T at = 0;
    for (int64_t i = 0; i < n; ++i) {
      const double error = error_in_units<T>(out.at<T>()[i], f.reference(values[static_cast<size_t>(i)]));
      if (error > worst) worst = error, at = values[static_cast<size_t>(i)];
    }
    EXPECT_LE(worst, 4) << f.op << "(" << at << ")";
    record<T>(f.op, worst);
  }
}

TYPED_TEST(Accuracy, OfTwoOperands) {
  using T = TypeParam;
  std::vector<T> left, right;
  for (const T a : special_values<T>())
    for (const T b : special_values<T>()) left.push_back(a), right.push_back(b);
  std::vector<T> a = arguments<T>(2), b = arguments<T>(3);
  std::shuffle(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(a.size() / 3), std::mt19937_64(4));
  left.insert(left.end(), a.begin(), a.end());
  right.insert(right.end(), b.begin(), b.end());
  append_powers(left, right);
  const auto n = static_cast<int64_t>(left.size());
  Array x = Array::of<T>(left, {n}), y = Array::of<T>(right, {n}), out(x.dtype(), {n});
  for (const Binary& f : kBinary) {
    ASSERT_EQ(cpu().call(f.op, {tensor(x), tensor(y)}, {tensor(out)}, x.dtype(), true), BP_OK);
    double worst = 0;
    size_t at = 0;
    for (size_t i = 0; i < left.size(); ++i) {
      const double error = error_in_units<T>(out.at<T>()[i], f.reference(left[i], right[i]));
      if (error > worst) worst = error, at = i;
    }
    EXPECT_LE(worst, f.exact ? 0 : 4) << f.op << "(" << left[at] << ", " << right[at] << ")";
    record<T>(f.op, worst);
  }
}

// A root made from its reciprocal is scaled like its argument by powers of 4, so that all fractions of two exponents
// stand for every argument whose residual is exact; next to them stand those of other exponents.
TEST(Roots, AreRoundedCorrectly) {
  constexpr uint32_t kFractions = 1 << 23, kBlock = 1 << 16, kOne = 0x3f800000, kApart = 32749;
  Array x(BP_FLOAT32, {kBlock}), out(BP_FLOAT32, {kBlock});
  const auto check = [&](uint32_t first, uint32_t step) {
    for (uint32_t i = 0; i < kBlock; ++i) x.at<float>()[i] = std::bit_cast<float>(first + i * step);
    ASSERT_EQ(cpu().call("bp::sqrt", {tensor(x)}, {tensor(out)}, BP_FLOAT32, true), BP_OK);
    for (uint32_t i = 0; i < kBlock; ++i)
      ASSERT_EQ(std::bit_cast<uint32_t>(out.at<float>()[i]), std::bit_cast<uint32_t>(std::sqrt(x.at<float>()[i])))
          << x.at<float>()[i];
  };
  for (uint32_t first = 0; first < 2 * kFractions; first += kBlock) check(kOne + first, 1);
  check(0, kApart);  // up to infinity, and some that are NaN
}

// Writes the table once all tests have run, where the environment names a file.
class AccuracyTable : public ::testing::Environment {
 public:
  void TearDown() override {
    const char* path = std::getenv("BACKPLANE_ACCURACY_TABLE");
    if (path == nullptr) return;
    std::ofstream table(path);
    table << "| function | float32 | float64 |\n| --- | --- | --- |\n" << std::fixed;
    table.precision(2);
    for (const auto& [op, errors] : largest_errors())
      table << "| `" << op << "` | " << errors.first << " | " << errors.second << " |\n";
  }
};
const auto* const kTable = ::testing::AddGlobalTestEnvironment(new AccuracyTable);

}  // namespace
}  // namespace backplane::testing::accuracy_test
