// What the tests of functions as arguments share: x^3 e^x plain, as a checkpoint and by rules, and its derivatives.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "backplane/autograd.hpp"
#include "backplane/graph_function.hpp"
#include "backplane/operand.hpp"
#include "backplane/transforms.hpp"
#include "memory/process/thread_state.hpp"
#include "null_backend.hpp"

namespace backplane::testing {

using Vector = std::vector<Tensor>;
using Span = std::span<const Tensor>;
using Scalars = std::function<Tensor(const Tensor&)>;

inline Vector call_with(const char* name, const GraphFunction& function, Vector args) {
  const bp_value values[] = {value(function), detail::borrow(Tensors(args))};
  bp_value out{};
  detail::call_results(detail::op_named(name), values, &out, 1);
  return detail::adopt_list(out);
}
inline Vector checkpoint(const GraphFunction& f, Vector args) {
  return call_with("bp::checkpoint", f, std::move(args));
}
inline Vector custom_function(const GraphFunction& f, Vector args) {
  return call_with("bp::custom_function", f, std::move(args));
}
inline void increment(const Tensor& x) {
  Tensor one = scalar(1.0);
  const bp_value values[] = {value(x), value(one)};
  detail::call_in_place(detail::op_named("bp::add"), values);
}

// x^3 e^x and its derivatives.
inline Tensor cube_exp(const Tensor& x) { return multiply(multiply(multiply(x, x), x), exp(x)); }
inline double first(double x) { return (x * x * x + 3 * x * x) * std::exp(x); }
inline double second(double x) { return (x * x * x + 6 * x * x + 6 * x) * std::exp(x); }

inline Tensor derivative(const Scalars& f, const Tensor& x) {
  return value_and_grad([&](Span in) { return Vector{f(in[0])}; }, {&x, 1}).gradients[0];
}
inline Tensor directional(const Scalars& f, const Tensor& x) {
  Tensor one = scalar(1.0);
  return jvp([&](Span in) { return Vector{f(in[0])}; }, {&x, 1}, {&one, 1}).tangents[0];
}

struct Counts {
  int call = 0, forward = 0, backward = 0, jvp = 0;
};

// cube_exp by rules: the residuals are x and a result of its own.
inline std::shared_ptr<GraphFunction> ruled(Counts& counts, bool backward, bool forward) {
  CustomRules rules;
  rules.call = [&](Span in) { return ++counts.call, Vector{cube_exp(in[0])}; };
  const auto slope = [](const Tensor& x, const Tensor& y) {
    return add(y, multiply(multiply(multiply(x, x), exp(x)), scalar(3.0)));
  };
  if (backward) {
    rules.forward = [&](Span in) {
      ++counts.forward;
      Tensor y = cube_exp(in[0]);
      return GraphFunction::Forward{{y}, {{in[0], y}, nullptr}};
    };
    rules.backward = [&counts, slope](const GraphFunction::Residuals& saved, Span g) {
      ++counts.backward;
      return Vector{multiply(g[0], slope(saved.tensors[0], saved.tensors[1]))};
    };
  }
  if (forward)
    rules.jvp = [&counts, slope](Span x, Span t) {
      ++counts.jvp;
      Tensor y = cube_exp(x[0]);
      return GraphFunction::Duals{{y}, {multiply(t[0], slope(x[0], y))}};
    };
  return make_custom_function("cube_exp", std::move(rules));
}

inline std::shared_ptr<GraphFunction> recomputed(int* runs = nullptr) {
  return make_checkpoint("cube_exp", [runs](Span in) {
    if (runs) ++*runs;
    return Vector{cube_exp(in[0])};
  });
}

inline Tensor batched(const Scalars& f, const Tensor& xs) {
  return vmap([&](Span in) { return Vector{f(in[0])}; }, {&xs, 1})[0];
}
inline void expect_each(const Tensor& found, double (*f)(double), const Tensor& xs) {
  const std::vector<double> y = values(found), x = values(xs);
  ASSERT_EQ(y.size(), x.size());
  for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(y[i], f(x[i]), 1e-11);
}

class GraphCall : public ::testing::Test {
 protected:
  void SetUp() override { null_backend(); }
  void TearDown() override {
    EXPECT_EQ(core::thread_state.level, nullptr);
    EXPECT_EQ(core::thread_state.captures, nullptr);
    EXPECT_TRUE(grad_enabled());
  }
};

}  // namespace backplane::testing
