// Levels: two gradients and one batching level nested over three elementwise ops, in every order, and what must be
// refused. The batching level lives here: it is the smallest that follows the rules of level.hpp.
#include <gtest/gtest.h>

#include <cmath>

#include "backplane/autograd.hpp"
#include "backplane/transforms.hpp"
#include "null_backend.hpp"
#include "transforms/level.hpp"

namespace backplane::testing {
namespace {

using core::Call;

Tensor reshaped(const Tensor& t, std::vector<int64_t> shape) { return op("reshape", {value(t), value(Shape(shape))}); }

// Elementwise ops over tensors whose batch axis is 0: pad each to the highest logical rank, so that they align.
class SmallBatchLevel final : public core::Level {
 public:
  SmallBatchLevel() : Level("vmap") {}
  void handle(const Call& call) override {
    int32_t rank = 0;
    core::each_tensor(call.args, call.n_args, [&](core::TensorImpl* t) { rank = std::max(rank, t->dl.ndim); });
    std::vector<Tensor> held;
    std::vector<bp_value> args(call.args, call.args + call.n_args);
    bool batched = false;
    {
      core::BelowLevel below(*this);
      for (bp_value& v : args) {
        if (v.tag != BP_TAG_TENSOR) continue;
        core::TensorImpl* inner = core::unwrap(*this, core::impl(v.u.t));
        if (!inner) continue;
        batched = batched || core::wrapper_of(*this, core::impl(v.u.t))->batched;
        if (!core::wrapper_of(*this, core::impl(v.u.t))->batched) {
          v.u.t = inner;
          continue;
        }
        std::vector<int64_t> shape(inner->dl.shape, inner->dl.shape + inner->dl.ndim);
        while (static_cast<int32_t>(shape.size()) < rank + 1) shape.insert(shape.begin() + 1, 1);
        held.push_back(reshaped(Tensor::share(inner), shape));
        v = value(held.back());
      }
      core::dispatch({call.op, args.data(), call.n_args, call.outs, call.n_outs, call.mask});
    }
    call.outs[0].u.t = core::wrap(*this, core::impl(call.outs[0].u.t), batched);
  }
};

using Unary = std::function<Tensor(const Tensor&)>;

Tensor batched(const Unary& f, const Tensor& x) {
  SmallBatchLevel level;
  core::retain(core::impl(x));
  Tensor in = Tensor::adopt(core::wrap(level, core::impl(x), true));
  Tensor out = f(in);
  return Tensor::share(core::unwrap(level, core::impl(out)));
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
