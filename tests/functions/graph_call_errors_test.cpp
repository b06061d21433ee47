// Function arguments that fail, or change their arguments: the errors, and that the levels are as
// before.
#include <gtest/gtest.h>

#include <thread>

#include "functions/graph_call_fixture.hpp"

namespace backplane::testing {
namespace {

template <class Call>
void expect_error(Call call, std::initializer_list<const char*> words) {
  try {
    call();
    FAIL() << "no error";
  } catch (const Error& error) {
    for (const char* word : words) EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
  }
  EXPECT_EQ(core::thread_state.level, nullptr);
}

TEST_F(GraphCall, MissingRulesAreNamed) {
  Counts counts;
  auto bare = ruled(counts, false, false), reverse = ruled(counts, true, false);
  Tensor x = scalar(1.0);
  EXPECT_NO_THROW(custom_function(*bare, {x}));
  expect_error([&] { derivative([&](const Tensor& y) { return custom_function(*bare, {y})[0]; }, x); },
               {"cube_exp", "grad", "defvjp"});
  expect_error([&] { directional([&](const Tensor& y) { return custom_function(*reverse, {y})[0]; }, x); },
               {"cube_exp", "jvp", "defjvp"});
  set_requires_grad(x, true);
  expect_error([&] { custom_function(*bare, {x}); }, {"cube_exp", "backward", "defvjp"});
}

TEST_F(GraphCall, CapturedTensorsOfCustomFunctionsAreRefused) {
  Tensor x = scalar(1.0);
  const auto with = [&](const Tensor& w) {
    CustomRules rules;
    rules.call = [w](Span in) { return Vector{multiply(in[0], w)}; };
    rules.forward = [w](Span in) { return GraphFunction::Forward{{multiply(in[0], w)}, {}}; };
    rules.backward = [](const GraphFunction::Residuals&, Span g) { return Vector{g[0]}; };
    rules.jvp = [w](Span in, Span t) { return GraphFunction::Duals{{multiply(in[0], w)}, {multiply(t[0], w)}}; };
    auto function = make_custom_function("scaled", std::move(rules));
    return [function](const Tensor& y) { return custom_function(*function, {y})[0]; };
  };
  expect_error([&] { derivative([&](const Tensor& w) { return with(w)(x); }, x); }, {"scaled", "grad", "argument"});
  expect_error([&] { derivative([&](const Tensor& w) { return with(w)(w); }, x); }, {"scaled", "grad", "argument"});
  expect_error([&] { directional([&](const Tensor& w) { return with(w)(x); }, x); }, {"scaled", "jvp", "argument"});
  Tensor w = scalar(2.0);
  set_requires_grad(w, true);
  expect_error([&] { with(w)(x); }, {"scaled", "argument"});
}

TEST_F(GraphCall, ExceptionsUnwind) {
  const auto boom = [](auto&&...) -> Vector { throw Error(BP_ERROR_VALUE, "boom"); };
  auto always = make_checkpoint("always", boom);
  int runs = 0;
  auto later = make_checkpoint("later", [&](Span in) {
    if (++runs > 1) throw Error(BP_ERROR_VALUE, "boom");
    return Vector{exp(in[0])};
  });
  CustomRules rules;
  rules.call = [](Span in) { return Vector{exp(in[0])}; };
  rules.forward = [](Span in) { return GraphFunction::Forward{{exp(in[0])}, {}}; };
  rules.backward = boom;
  rules.jvp = [](Span, Span) -> GraphFunction::Duals { throw Error(BP_ERROR_VALUE, "boom"); };
  auto custom = make_custom_function("custom", std::move(rules));
  Tensor x = scalar(1.0);
  expect_error([&] { derivative([&](const Tensor& y) { return checkpoint(*always, {y})[0]; }, x); }, {"boom"});
  expect_error([&] { derivative([&](const Tensor& y) { return checkpoint(*later, {y})[0]; }, x); }, {"boom"});
  expect_error([&] { directional([&](const Tensor& y) { return custom_function(*custom, {y})[0]; }, x); }, {"boom"});
  expect_error([&] { derivative([&](const Tensor& y) { return custom_function(*custom, {y})[0]; }, x); }, {"boom"});
  set_requires_grad(x, true);
  Tensor none, y = custom_function(*custom, {x})[0];
  expect_error([&] { backward({&y, 1}, {&none, 1}, {}); }, {"boom"});
  EXPECT_NEAR(item(derivative(cube_exp, scalar(1.5))), first(1.5), 1e-12);
}

TEST_F(GraphCall, ChangesInPlaceAreSeen) {
  Tensor x = scalar(1.0), none;
  set_requires_grad(x, true);
  auto function = recomputed();
  Tensor y = multiply(x, x);
  Tensor z = checkpoint(*function, {y})[0];
  set_grad_enabled(false);
  increment(y);
  set_grad_enabled(true);
  expect_error([&] { backward({&z, 1}, {&none, 1}, {}); }, {"cube_exp", "in place", "version"});
  Tensor w = multiply(x, x);
  auto changes = make_checkpoint("changes", [&](Span in) {
    increment(w);
    return Vector{multiply(in[0], w)};
  });
  expect_error([&] { checkpoint(*changes, {x}); }, {"changes", "in place"});
}

TEST_F(GraphCall, WrongResultsOfRulesAreErrors) {
  const auto with = [](Vector cotangents) {
    CustomRules rules;
    rules.call = [](Span in) { return Vector{exp(in[0])}; };
    rules.forward = [](Span in) { return GraphFunction::Forward{{exp(in[0])}, {}}; };
    rules.backward = [cotangents](const GraphFunction::Residuals&, Span) { return cotangents; };
    return make_custom_function("wrong", std::move(rules));
  };
  Tensor x = scalar(1.0);
  for (const auto& function : {with({}), with({scalar(1), scalar(1)}), with({tensor({1, 2}, {2})})})
    expect_error([&] { derivative([&](const Tensor& y) { return custom_function(*function, {y})[0]; }, x); },
                 {"wrong", "backward rule", "cotangent"});
  auto zero = with({Tensor()});
  EXPECT_EQ(item(derivative([&](const Tensor& y) { return custom_function(*zero, {y})[0]; }, x)), 0.0);
}

TEST_F(GraphCall, SeveralThreads) {
  Counts counts[4];
  auto shared = recomputed();
  std::vector<std::thread> threads;
  for (Counts& mine : counts)
    threads.emplace_back([&] {
      auto own = ruled(mine, true, true);
      for (int i = 0; i < 50; ++i) {
        const auto f = [&](const Tensor& y) { return checkpoint(*shared, {custom_function(*own, {y})[0]})[0]; };
        Tensor x = scalar(0.3);
        const double q = 0.027 * std::exp(0.3);
        EXPECT_NEAR(item(derivative(f, x)), first(q) * first(0.3), 1e-12);
      }
    });
  for (std::thread& t : threads) t.join();
}

}  // namespace
}  // namespace backplane::testing
