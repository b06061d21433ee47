// Functions as arguments: a checkpoint and a function with rules of its own give, under every nesting of the tape, grad
// and jvp, what the plain function gives; the rules are really called; an exception leaves the levels as they were.
#include "functions/graph_call.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "functions/graph_call_fixture.hpp"

namespace backplane::testing {
namespace {

// The same laws for a checkpoint and for rules in either mode.
void check_nestings(const Scalars& f, bool forward) {
  Tensor x = scalar(1.5);
  EXPECT_NEAR(item(f(x)), 1.5 * 1.5 * 1.5 * std::exp(1.5), 1e-12);
  EXPECT_NEAR(item(derivative(f, x)), first(1.5), 1e-12);
  EXPECT_NEAR(item(derivative([&](const Tensor& y) { return derivative(f, y); }, x)), second(1.5), 1e-11);
  if (forward) {
    EXPECT_NEAR(item(directional(f, x)), first(1.5), 1e-12);
    EXPECT_NEAR(item(directional([&](const Tensor& y) { return derivative(f, y); }, x)), second(1.5), 1e-11);
    EXPECT_NEAR(item(derivative([&](const Tensor& y) { return directional(f, y); }, x)), second(1.5), 1e-11);
    EXPECT_NEAR(item(directional([&](const Tensor& y) { return directional(f, y); }, x)), second(1.5), 1e-11);
  }
  const auto df = [&](const Tensor& y) { return derivative(f, y); };
  Tensor xs = tensor({0.5, 1.0, 1.5}, {3});
  expect_each(batched(df, xs), first, xs);
  expect_each(batched([&](const Tensor& y) { return derivative(df, y); }, xs), second, xs);
  expect_each(derivative([&](const Tensor& ys) { return sum(batched(f, ys)); }, xs), first, xs);
  expect_each(derivative([&](const Tensor& ys) { return sum(batched(df, ys)); }, xs), second, xs);
  Tensor twice = batched([&](const Tensor&) { return batched(df, xs); }, tensor({1, 2}, {2}));
  expect_each(select(twice, 0, 1), first, xs);
  if (forward) {
    expect_each(batched([&](const Tensor& y) { return directional(f, y); }, xs), first, xs);
    Tensor ones = tensor({1, 1, 1}, {3});
    expect_each(jvp([&](Span in) { return Vector{batched(df, in[0])}; }, {&xs, 1}, {&ones, 1}).tangents[0], second, xs);
  }
  set_requires_grad(xs, true);
  Tensor none, loss = sum(batched(f, xs));
  backward({&loss, 1}, {&none, 1}, {});
  expect_each(grad_of(xs), first, xs);
  set_requires_grad(x, true);
  Tensor y = f(x);
  Tensor g = gradients({&y, 1}, {&none, 1}, {&x, 1}, {.create_graph = true})[0];
  EXPECT_NEAR(item(g), first(1.5), 1e-12);
  EXPECT_NEAR(item(gradients({&g, 1}, {&none, 1}, {&x, 1}, {})[0]), second(1.5), 1e-11);
  Tensor z = multiply(f(multiply(x, x)), x);  // in the middle of a graph
  backward({&z, 1}, {&none, 1}, {});
  const double q = 1.5 * 1.5;
  EXPECT_NEAR(item(grad_of(x)), q * q * q * std::exp(q) + 1.5 * first(q) * 2 * 1.5, 1e-9);
}

TEST_F(GraphCall, CheckpointInEveryNesting) {
  auto function = recomputed();
  check_nestings([&](const Tensor& x) { return checkpoint(*function, {x})[0]; }, true);
}

TEST_F(GraphCall, NestedCheckpointsInEveryNesting) {
  auto inner = make_checkpoint("square", [](Span in) { return Vector{multiply(in[0], in[0])}; });
  auto outer = make_checkpoint(
      "outer", [&](Span in) { return Vector{multiply(multiply(checkpoint(*inner, {in[0]})[0], in[0]), exp(in[0]))}; });
  check_nestings([&](const Tensor& x) { return checkpoint(*outer, {x})[0]; }, true);
}

TEST_F(GraphCall, ReverseRulesInEveryNesting) {
  Counts counts;
  auto function = ruled(counts, true, false);
  check_nestings([&](const Tensor& x) { return custom_function(*function, {x})[0]; }, false);
  EXPECT_GT(counts.forward, 0);
  EXPECT_GT(counts.backward, 0);
}

TEST_F(GraphCall, ForwardRulesServeBothModes) {
  Counts counts;
  auto function = ruled(counts, false, true);
  check_nestings([&](const Tensor& x) { return custom_function(*function, {x})[0]; }, true);
  EXPECT_GT(counts.jvp, 0);
}

TEST_F(GraphCall, BothRulesInEveryNesting) {
  Counts counts;
  auto function = ruled(counts, true, true);
  check_nestings([&](const Tensor& x) { return custom_function(*function, {x})[0]; }, true);
  EXPECT_GT(counts.backward, 0);
  EXPECT_GT(counts.jvp, 0);
}

TEST_F(GraphCall, TheRuleDecidesNotTheFunction) {
  CustomRules rules;
  rules.call = [](Span in) { return Vector{exp(in[0])}; };
  rules.forward = [](Span in) { return GraphFunction::Forward{{exp(in[0])}, {}}; };
  rules.backward = [](const GraphFunction::Residuals&, Span g) { return Vector{multiply(g[0], scalar(7.0))}; };
  auto function = make_custom_function("odd", std::move(rules));
  const auto f = [&](const Tensor& x) { return custom_function(*function, {x})[0]; };
  Tensor x = scalar(0.5), none;
  EXPECT_EQ(item(derivative(f, x)), 7.0);
  set_requires_grad(x, true);
  Tensor y = f(x);
  backward({&y, 1}, {&none, 1}, {});
  EXPECT_EQ(item(grad_of(x)), 7.0);
}

TEST_F(GraphCall, CheckpointReachesWhatItsFunctionCaptures) {
  Tensor x = scalar(1.5), none;
  const auto through = [](const Tensor& w) {
    auto function = make_checkpoint("scaled", [w](Span in) { return Vector{multiply(multiply(w, w), in[0])}; });
    return [function](const Tensor& y) { return checkpoint(*function, {y})[0]; };
  };
  // d/dw of w² x at a level, on the tape, and of the derivative by x.
  EXPECT_NEAR(item(derivative([&](const Tensor& w) { return through(w)(x); }, x)), 2 * 1.5 * 1.5, 1e-12);
  EXPECT_NEAR(item(derivative([&](const Tensor& w) { return derivative(through(w), x); }, x)), 2 * 1.5, 1e-12);
  EXPECT_NEAR(item(directional([&](const Tensor& w) { return through(w)(x); }, x)), 2 * 1.5 * 1.5, 1e-12);
  EXPECT_NEAR(item(directional([&](const Tensor& w) { return derivative(through(w), x); }, x)), 2 * 1.5, 1e-12);
  EXPECT_NEAR(item(derivative([&](const Tensor& w) { return directional(through(w), x); }, x)), 2 * 1.5, 1e-12);
  Tensor w = scalar(2.0);
  set_requires_grad(w, true);
  Tensor y = through(multiply(w, w))(x);
  backward({&y, 1}, {&none, 1}, {});
  EXPECT_NEAR(item(grad_of(w)), 4 * 8.0 * 1.5, 1e-12);
}

TEST_F(GraphCall, ConstantsAndRepeatedArgumentsAndReturnedOnes) {
  auto function = make_checkpoint("pair", [](Span in) {
    return Vector{multiply(in[0], in[1]), in[0], in[2], add(in[1], in[2])};
  });
  Tensor c = scalar(3.0);
  const auto f = [&](const Tensor& x) {
    Vector r = checkpoint(*function, {x, x, c});
    return add(add(r[0], r[1]), multiply(r[2], r[3]));  // x² + x + c (x + c)
  };
  Tensor x = scalar(2.0), none;
  EXPECT_EQ(item(f(x)), 4 + 2 + 3 * 5);
  EXPECT_EQ(item(derivative(f, x)), 2 * 2 + 1 + 3);
  EXPECT_EQ(item(derivative([&](const Tensor& y) { return derivative(f, y); }, x)), 2);
  set_requires_grad(x, true);
  Tensor y = f(x);
  backward({&y, 1}, {&none, 1}, {});
  EXPECT_EQ(item(grad_of(x)), 2 * 2 + 1 + 3);
  EXPECT_TRUE(is_leaf(c));
  EXPECT_FALSE(requires_grad(c));
}

TEST_F(GraphCall, MoreResultsThanAnOpMayHave) {
  auto function = make_checkpoint("many", [](Span in) {
    Vector out;
    for (int i = 0; i < 300; ++i) out.push_back(multiply(in[0], scalar(i)));
    return out;
  });
  Tensor x = scalar(2.0);
  const auto f = [&](const Tensor& y) {
    Vector r = checkpoint(*function, {y});
    return add(multiply(r[299], r[2]), r[40]);
  };
  EXPECT_EQ(item(derivative(f, x)), 2 * 299 * 2 * 2 + 40);
}

TEST_F(GraphCall, KeepsArgumentsAloneAndRunsTwice) {
  int runs = 0;
  auto function = make_checkpoint("long", [&](Span in) {
    ++runs;
    Tensor y = in[0];
    for (int i = 0; i < 20; ++i) y = exp(negative(y));
    return Vector{y};
  });
  Tensor x = tensor({0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2}, {12}), none;
  set_requires_grad(x, true);
  const int64_t before = live_blocks();
  Tensor loss = sum(checkpoint(*function, {x})[0]);
  EXPECT_LE(live_blocks() - before, 2);
  backward({&loss, 1}, {&none, 1}, {});
  EXPECT_EQ(runs, 2);
}

TEST_F(GraphCall, ReleasesItsFunctionWithTheGraph) {
  auto function = recomputed();
  std::weak_ptr<GraphFunction> watched = function;
  Tensor x = scalar(1.0);
  set_requires_grad(x, true);
  Tensor y = checkpoint(*function, {x})[0];
  function.reset();
  EXPECT_FALSE(watched.expired());
  std::thread([gone = std::move(y)]() mutable { gone = Tensor(); }).join();
  EXPECT_TRUE(watched.expired());
}

TEST_F(GraphCall, ReplaysRandomNumbers) {
  bp_generator_state generator{7, 100};
  std::vector<uint64_t> seen;
  auto inner = make_checkpoint("inner", [&](Span in) {
    seen.push_back(reserve_random(generator, 3).counter);
    return Vector{exp(in[0])};
  });
  auto outer = make_checkpoint("outer", [&](Span in) {
    seen.push_back(reserve_random(generator, 5).counter);
    Tensor y = checkpoint(*inner, {in[0]})[0];
    seen.push_back(reserve_random(generator, 2).counter);
    return Vector{y};
  });
  Tensor x = scalar(1.0), none;
  set_requires_grad(x, true);
  Tensor y = checkpoint(*outer, {x})[0];
  EXPECT_EQ(generator.counter, 110u);
  reserve_random(generator, 1);
  backward({&y, 1}, {&none, 1}, {});
  EXPECT_EQ(generator.counter, 111u);
  EXPECT_EQ(seen, (std::vector<uint64_t>{100, 105, 108, 100, 105, 108, 105}));
}

TEST_F(GraphCall, UnbatchedArgumentsGetTheSumOverRows) {
  CustomRules rules;
  rules.call = [](Span in) { return Vector{multiply(in[0], in[1]), in[1]}; };
  rules.forward = [](Span in) {
    return GraphFunction::Forward{{multiply(in[0], in[1]), in[1]}, {{in[0], in[1]}, nullptr}};
  };
  rules.backward = [](const GraphFunction::Residuals& r, Span g) {
    return Vector{multiply(g[0], r.tensors[1]), add(multiply(g[0], r.tensors[0]), g[1])};
  };
  auto custom = make_custom_function("product", std::move(rules));
  auto plain = make_checkpoint("product", [](Span in) { return Vector{multiply(in[0], in[1]), in[1]}; });
  Tensor xs = tensor({1, 2, 3}, {3}), w = scalar(2.0);
  const auto loss = [&](auto op, const Tensor& v) {
    return sum(batched(
        [&](const Tensor& x) {
          Vector r = op(x, v);
          return add(r[0], multiply(r[1], r[1]));
        },
        xs));
  };
  const auto with_rules = [&](const Tensor& x, const Tensor& v) { return custom_function(*custom, {x, v}); };
  const auto again = [&](const Tensor& x, const Tensor& v) { return checkpoint(*plain, {x, v}); };
  EXPECT_EQ(item(derivative([&](const Tensor& v) { return loss(with_rules, v); }, w)), 6 + 3 * 2 * 2);
  EXPECT_EQ(item(derivative([&](const Tensor& v) { return loss(again, v); }, w)), 6 + 3 * 2 * 2);
}

TEST_F(GraphCall, BatchRulesAreCalled) {
  int calls = 0;
  CustomRules rules;
  rules.call = [](Span in) { return Vector{exp(in[0])}; };
  rules.batch = [&](int64_t size, const std::vector<bool>& flags, Span in) {
    ++calls;
    EXPECT_EQ(size, 3);
    EXPECT_EQ(flags, (std::vector<bool>{true, false}));
    return GraphFunction::Batched{{multiply(in[0], in[1])}, {true}};
  };
  auto function = make_custom_function("batched", std::move(rules));
  Tensor xs = tensor({1, 2, 3}, {3}), c = scalar(5.0);
  EXPECT_EQ(values(batched(
                [&](const Tensor& x) {
                  return custom_function(*function, {x, c})[0];
                },
                xs)),
            (std::vector<double>{5, 10, 15}));
  EXPECT_EQ(calls, 1);
}

TEST_F(GraphCall, CapturedBatchesStayBatched) {
  Tensor xs = tensor({1, 2, 3}, {3}), c = scalar(2.0);
  Tensor d = batched(
      [&](const Tensor& w) {
        auto function = make_checkpoint("scaled", [w](Span in) { return Vector{multiply(multiply(in[0], in[0]), w)}; });
        return derivative([&](const Tensor& y) { return checkpoint(*function, {y})[0]; }, c);
      },
      xs);
  EXPECT_EQ(values(d), (std::vector<double>{4, 8, 12}));
}

}  // namespace
}  // namespace backplane::testing
