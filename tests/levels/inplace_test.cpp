// In-place changes inside transforms: they differentiate, views and bases see each other's, and a transform's value
// never gets into a tensor from outside.
#include <gtest/gtest.h>

#include "backplane/transforms.hpp"
#include "null_backend.hpp"

namespace backplane::testing::inplace_test {
namespace {

void change(const char* name, const Tensor& target, const Tensor& other) {
  const bp_value args[] = {value(target), value(other)};
  if (bp_status status = call_inplace(find_op(name), args, 2)) throw_last_error(status);
}

std::vector<double> gradient(const std::function<Tensor(const Tensor&)>& f, const Tensor& x) {
  return values(
      value_and_grad([&](std::span<const Tensor> in) { return std::vector<Tensor>{f(in[0])}; }, {&x, 1}).gradients[0]);
}
std::vector<double> tangent(const std::function<Tensor(const Tensor&)>& f, const Tensor& x, const Tensor& t) {
  return values(
      jvp([&](std::span<const Tensor> in) { return std::vector<Tensor>{f(in[0])}; }, {&x, 1}, {&t, 1}).tangents[0]);
}

// x -> (x + x)^2, in place.
Tensor doubled_square(const Tensor& x) {
  Tensor y = op("copy", {value(x)});
  change("bp::add", y, x);
  return sum(multiply(y, y));
}

TEST(Inplace, DifferentiatesInBothModes) {
  Tensor x = tensor({1, 2}, {2}), t = tensor({1, 10}, {2});
  EXPECT_EQ(gradient(doubled_square, x), (std::vector<double>{8, 16}));
  EXPECT_EQ(tangent(doubled_square, x, t), (std::vector<double>{168}));
}

TEST(Inplace, OfAnInputLeavesTheCallersTensor) {
  Tensor x = tensor({1, 2}, {2});
  auto f = [](const Tensor& y) {
    Tensor z = y;
    change("bp::multiply", z, y);
    return sum(z);
  };
  EXPECT_EQ(gradient(f, x), (std::vector<double>{2, 4}));
  EXPECT_EQ(values(x), (std::vector<double>{1, 2}));
}

TEST(Inplace, AViewSeesItsBasesChange) {
  Tensor x = tensor({1, 2}, {2});
  auto f = [](const Tensor& y) {
    Tensor base = op("copy", {value(y)});
    Tensor view = select(base, 0, 1);
    change("bp::multiply", base, y);
    return sum(view);  // y[1]^2
  };
  EXPECT_EQ(gradient(f, x), (std::vector<double>{0, 4}));
}

TEST(Inplace, ABaseAndItsOtherViewsSeeAViewsChange) {
  Tensor x = tensor({1, 2}, {2});
  auto f = [](const Tensor& y) {
    Tensor base = op("copy", {value(y)});
    Tensor one = select(base, 0, 1), same = select(base, 0, 1);
    change("bp::multiply", one, one);
    return sum(multiply(base, same));  // y0 y1^2 + y1^4
  };
  EXPECT_EQ(gradient(f, x), (std::vector<double>{4, 36}));
}

TEST(Inplace, AnInsidersZerosTakeValues) {
  Tensor x = tensor({1, 2}, {2});
  auto f = [](const Tensor& y) {
    Tensor z = op("zeros_like", {value(y)});
    change("bp::add", z, multiply(y, y));
    return sum(z);
  };
  EXPECT_EQ(gradient(f, x), (std::vector<double>{2, 4}));
}

TEST(Inplace, AnOutsidersTensorRefusesThem) {
  Tensor x = tensor({1, 2}, {2}), outside = tensor({0, 0}, {2});
  try {
    gradient(
        [&](const Tensor& y) {
          change("bp::add", outside, y);
          return sum(y);
        },
        x);
    FAIL() << "a tracked value was written into a captured tensor";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("outside"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("grad"), std::string::npos) << error.what();
  }
  EXPECT_EQ(values(outside), (std::vector<double>{0, 0}));
}

TEST(Inplace, AnOutsidersTensorTakesPlainValues) {
  Tensor x = scalar(2), counter = scalar(0), one = scalar(1);
  gradient(
      [&](const Tensor& y) {
        change("bp::add", counter, one);
        return multiply(y, y);
      },
      x);
  EXPECT_EQ(item(counter), 1);
}

TEST(Inplace, ASavedValueThatWasChangedIsAnError) {
  Tensor x = tensor({1, 2}, {2});
  auto inner = [](const Tensor& y) {
    Tensor kept = op("copy", {value(y)});
    ValuesAndPullback r =
        vjp([&](std::span<const Tensor> in) { return std::vector<Tensor>{multiply(in[0], kept)}; }, {&y, 1});
    change("bp::add", kept, y);
    Tensor ones = op("ones_like", {value(y)});
    return sum(r.pullback({&ones, 1})[0]);
  };
  try {
    gradient(inner, x);
    FAIL() << "kept was changed after multiply saved it";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("multiply"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("version 0, now 1"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace backplane::testing::inplace_test
