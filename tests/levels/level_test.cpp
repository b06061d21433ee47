// Levels: two gradients and one batching level nested over three elementwise ops, in every order, and what must be
// refused.
#include <gtest/gtest.h>

#include <cmath>

#include "backplane/autograd.hpp"
#include "backplane/transforms.hpp"
#include "memory/process/thread_state.hpp"
#include "null_backend.hpp"

namespace backplane::testing {
namespace {

using Unary = std::function<Tensor(const Tensor&)>;

Tensor batched(const Unary& f, const Tensor& x) {
  return vmap([&](std::span<const Tensor> in) { return std::vector<Tensor>{f(in[0])}; }, {&x, 1})[0];
}

Tensor derivative(const Unary& f, const Tensor& x) {
  return value_and_grad([&](std::span<const Tensor> in) { return std::vector<Tensor>{f(in[0])}; }, {&x, 1})
      .gradients[0];
}

// x^3 e^x and its derivatives.
Tensor cube_exp(const Tensor& x) { return multiply(multiply(multiply(x, x), x), exp(x)); }
double first(double x) { return (x * x * x + 3 * x * x) * std::exp(x); }
double second(double x) { return (x * x * x + 6 * x * x + 6 * x) * std::exp(x); }

TEST(Level, GradOfGrad) {
  Tensor x = scalar(1.5);
  Tensor d = derivative([](const Tensor& y) { return derivative(cube_exp, y); }, x);
  EXPECT_NEAR(item(d), second(1.5), 1e-12);
}

TEST(Level, BatchOfGradOfGrad) {
  Tensor x = tensor({0.5, 1.0, 1.5}, {3});
  std::vector<double> d = values(batched(
      [](const Tensor& y) { return derivative([](const Tensor& z) { return derivative(cube_exp, z); }, y); }, x));
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(d[static_cast<size_t>(i)], second(0.5 + 0.5 * i), 1e-12);
}

TEST(Level, GradOfBatchOfGrad) {
  // The gradient of the sum over a batch of first derivatives is the second derivative at each element.
  Tensor x = tensor({0.5, 1.0, 1.5}, {3});
  std::vector<double> d = values(derivative(
      [](const Tensor& y) { return sum(batched([](const Tensor& z) { return derivative(cube_exp, z); }, y)); }, x));
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(d[static_cast<size_t>(i)], second(0.5 + 0.5 * i), 1e-12);
}

TEST(Level, GradOfGradOfBatch) {
  Tensor x = tensor({0.5, 1.0, 1.5}, {3});
  std::vector<double> d = values(derivative(
      [](const Tensor& y) { return sum(derivative([](const Tensor& z) { return sum(batched(cube_exp, z)); }, y)); },
      x));
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(d[static_cast<size_t>(i)], second(0.5 + 0.5 * i), 1e-12);
}

TEST(Level, NoPerturbationConfusion) {
  // d/dx [x * d/dy (x + y)] at 1 is 1; d/dx [x * d/dy (x * y)] at 3, y = 2, is 6.
  Tensor one = scalar(1), two = scalar(2), three = scalar(3);
  EXPECT_EQ(
      item(derivative(
          [&](const Tensor& x) { return multiply(x, derivative([&](const Tensor& y) { return add(x, y); }, two)); },
          one)),
      1);
  EXPECT_EQ(item(derivative(
                [&](const Tensor& x) {
                  return multiply(x, derivative([&](const Tensor& y) { return multiply(x, y); }, two));
                },
                three)),
            6);
}

TEST(Level, TheTapeSeesThroughALevel) {
  Tensor x = scalar(1.5);
  set_requires_grad(x, true);
  Tensor d = derivative(cube_exp, x);
  EXPECT_NEAR(item(d), first(1.5), 1e-12);
  backward({&d, 1}, {}, {});
  EXPECT_NEAR(item(grad_of(x)), second(1.5), 1e-12);
}

TEST(Level, AConstantFunctionHasZeroGradient) {
  Tensor x = tensor({1, 2}, {2}), c = scalar(3);
  EXPECT_EQ(values(derivative([&](const Tensor&) { return c; }, x)), (std::vector<double>{0, 0}));
}

TEST(Level, AnEscapedWrapperIsAnError) {
  Tensor x = scalar(2), kept;
  derivative([&](const Tensor& y) { return kept = multiply(y, y); }, x);
  try {
    add(kept, x);
    FAIL() << "the wrapper outlived its level";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("transform"), std::string::npos) << error.what();
  }
}

TEST(Level, AnErrorUnwindsTheStack) {
  Tensor x = scalar(2);
  EXPECT_THROW(derivative([](const Tensor&) -> Tensor { throw Error(BP_ERROR_VALUE, "from the user"); }, x), Error);
  EXPECT_EQ(core::thread_state.level, nullptr);
  EXPECT_NEAR(item(derivative(cube_exp, x)), first(2), 1e-9);
}

template <class F>
std::string refusal(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Level, ScopesAreLeftInTheReverseOrderOfTheirMaking) {
  const Tensor x = scalar(2), rows = tensor({1, 2}, {2});
  {
    GradScope outer;
    Tensor a = outer.enter(x);
    GradScope inner;
    Tensor y[] = {multiply(a, inner.enter(x))};
    EXPECT_NE(refusal([&] { outer.leave(y, 1); }).find("reverse order"), std::string::npos);
    inner.leave(y, 1);
    EXPECT_NE(refusal([&] { inner.leave(y, 1); }).find("has ended"), std::string::npos);
    EXPECT_NE(refusal([&] { inner.enter(x); }).find("has ended"), std::string::npos);
    Pullback pullback = outer.leave(y, 1);
    EXPECT_EQ(item(pullback.of_one()[0]), 2);
  }
  {
    JvpScope outer;
    BatchScope inner(2);
    EXPECT_NE(refusal([&] { outer.leave(x); }).find("reverse order"), std::string::npos);
  }
  {
    BatchScope outer(2);
    JvpScope inner;
    EXPECT_NE(refusal([&] { outer.leave(x, 0); }).find("reverse order"), std::string::npos);
  }
  EXPECT_EQ(core::thread_state.level, nullptr);
}

TEST(Level, AScopeThatEndsOutOfOrderLeavesTheOthers) {
  auto outer = std::make_unique<GradScope>();
  auto inner = std::make_unique<GradScope>();
  outer.reset();
  const Tensor x = scalar(3);
  Tensor a = inner->enter(x), y[] = {multiply(a, a)};
  EXPECT_EQ(item(inner->leave(y, 1).of_one()[0]), 6);
  inner.reset();
  EXPECT_EQ(core::thread_state.level, nullptr);
}

TEST(Level, OfOneIsOfOneNumber) {
  const Tensor x = tensor({1, 2}, {2});
  for (const size_t roots : {0, 1, 2}) {
    GradScope scope;
    Tensor a = scope.enter(x), y[] = {multiply(a, a), a};
    const Pullback pullback = scope.leave(y, roots);
    EXPECT_NE(refusal([&] { pullback.of_one(); }).find("of_one"), std::string::npos);
  }
}

TEST(Level, AnEmptyFunctionIsRefusedByEveryTransform) {
  const Tensor x = tensor({1, 2}, {2});
  const Function none;
  for (const auto& attempt : std::vector<std::function<void()>>{[&] {
                                                                  vmap(none, {&x, 1});
                                                                },
                                                                [&] {
                                                                  vjp(none, {&x, 1});
                                                                },
                                                                [&] {
                                                                  value_and_grad(none, {&x, 1});
                                                                },
                                                                [&] {
                                                                  jvp(none, {&x, 1}, {&x, 1});
                                                                }})
    EXPECT_NE(refusal(attempt).find("the function is empty"), std::string::npos) << refusal(attempt);
}

TEST(Level, BackwardInsideATransformIsRefused) {
  Tensor x = scalar(2);
  EXPECT_THROW(derivative(
                   [](const Tensor& y) {
                     Tensor z = multiply(y, y);
                     backward({&z, 1}, {}, {});
                     return z;
                   },
                   x),
               Error);
}

}  // namespace
}  // namespace backplane::testing
