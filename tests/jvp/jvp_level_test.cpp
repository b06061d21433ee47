// Forward mode: tangents against closed forms and against reverse mode, nested in itself and in gradients.
#include <gtest/gtest.h>

#include <cmath>

#include "backplane/autograd.hpp"
#include "backplane/transforms.hpp"
#include "null_backend.hpp"

namespace backplane::testing {
namespace {

using Unary = std::function<Tensor(const Tensor&)>;

Tensor forward(const Unary& f, const Tensor& x, const Tensor& t) {
  return jvp([&](std::span<const Tensor> in) { return std::vector<Tensor>{f(in[0])}; }, {&x, 1}, {&t, 1}).tangents[0];
}
Tensor reverse(const Unary& f, const Tensor& x) {
  return value_and_grad([&](std::span<const Tensor> in) { return std::vector<Tensor>{f(in[0])}; }, {&x, 1})
      .gradients[0];
}

Tensor cube_exp(const Tensor& x) { return multiply(multiply(multiply(x, x), x), exp(x)); }
double first(double x) { return (x * x * x + 3 * x * x) * std::exp(x); }
double second(double x) { return (x * x * x + 6 * x * x + 6 * x) * std::exp(x); }

TEST(Jvp, FollowsTheDirection) {
  Tensor x = tensor({0.5, 1.5}, {2}), t = tensor({2, -1}, {2});
  std::vector<double> d = values(forward(cube_exp, x, t));
  EXPECT_NEAR(d[0], 2 * first(0.5), 1e-12);
  EXPECT_NEAR(d[1], -first(1.5), 1e-12);
}

TEST(Jvp, NestsInItselfAndInGradients) {
  Tensor x = scalar(1.5), one = scalar(1);
  EXPECT_NEAR(item(forward([&](const Tensor& y) { return forward(cube_exp, y, one); }, x, one)), second(1.5), 1e-12);
  EXPECT_NEAR(item(forward([&](const Tensor& y) { return reverse(cube_exp, y); }, x, one)), second(1.5), 1e-12);
  EXPECT_NEAR(item(reverse([&](const Tensor& y) { return forward(cube_exp, y, one); }, x)), second(1.5), 1e-12);
}

TEST(Jvp, NoPerturbationConfusion) {
  Tensor one = scalar(1), two = scalar(2), three = scalar(3);
  EXPECT_EQ(
      item(forward(
          [&](const Tensor& x) { return multiply(x, forward([&](const Tensor& y) { return add(x, y); }, two, one)); },
          one, one)),
      1);
  EXPECT_EQ(item(forward(
                [&](const Tensor& x) {
                  return multiply(x, forward([&](const Tensor& y) { return multiply(x, y); }, two, one));
                },
                three, one)),
            6);
}

TEST(Jvp, AddendsBroadcastToTheResult) {
  Tensor x = scalar(2), c = tensor({1, 2, 3}, {3});
  EXPECT_EQ(values(forward([&](const Tensor& y) { return add(y, c); }, x, scalar(1))), (std::vector<double>{1, 1, 1}));
}

TEST(Jvp, AConstantResultHasZeroTangent) {
  Tensor x = scalar(2), c = tensor({1, 2}, {2});
  EXPECT_EQ(values(forward([&](const Tensor&) { return c; }, x, scalar(1))), (std::vector<double>{0, 0}));
}

TEST(Jvp, TheTapeSeesThroughIt) {
  Tensor x = scalar(1.5);
  set_requires_grad(x, true);
  Tensor d = forward(cube_exp, x, scalar(1));
  backward({&d, 1}, {}, {});
  EXPECT_NEAR(item(grad_of(x)), second(1.5), 1e-12);
}

TEST(Jvp, AMismatchedTangentIsNamed) {
  Tensor x = scalar(2), t = tensor({1, 2}, {2});
  try {
    forward(cube_exp, x, t);
    FAIL() << "the shapes differ";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), BP_ERROR_SHAPE);
    EXPECT_NE(std::string(error.what()).find("jvp"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace backplane::testing
