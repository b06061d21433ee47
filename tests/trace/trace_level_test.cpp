// Tracing from C++: calls inside are recorded and do not run; the graph computes the same as the function.
#include <gtest/gtest.h>

#include "backplane/graph.hpp"
#include "backplane/graph_function.hpp"
#include "graph/verify.hpp"
#include "null_backend.hpp"

namespace backplane::testing {
namespace {

class Trace : public ::testing::Test {
 protected:
  void SetUp() override { null_backend(); }
};

std::vector<Tensor> gradient(std::span<const Tensor> in) {
  return value_and_grad([](std::span<const Tensor> x) { return std::vector<Tensor>{sum(multiply(x[0], x[0]))}; }, in)
      .gradients;
}

TEST_F(Trace, WritesDownAndDoesNotRun) {
  const Tensor x = tensor({1, 2, 3}, {3});
  reset_call_counts();
  const Graph graph =
      make_graph([](std::span<const Tensor> in) { return std::vector<Tensor>{exp(add(in[0], in[0]))}; }, {&x, 1});
  EXPECT_EQ(call_counts().kernels, 0u);
  ASSERT_EQ(graph.size(), 2u);
  EXPECT_EQ(graph.node(0).op_name, "bp::add");
  EXPECT_EQ(graph.node(1).op_name, "bp::exp");
  const Tensor other = tensor({0, 1, 2}, {3});
  EXPECT_EQ(values(graph.call({&other, 1})[0]), values(exp(add(other, other))));
}

TEST_F(Trace, HoldsAGradientAndIsDifferentiated) {
  const Tensor x = tensor({1, 2, 3}, {3}), other = tensor({4, 5, 6}, {3});
  EXPECT_EQ(values(make_graph(gradient, {&x, 1}).call({&other, 1})[0]), (std::vector<double>{8, 10, 12}));
  const Graph square =
      make_graph([](std::span<const Tensor> in) { return std::vector<Tensor>{sum(multiply(in[0], in[0]))}; }, {&x, 1});
  const auto found = value_and_grad([&](std::span<const Tensor> in) { return square.call(in); }, {&other, 1}).gradients;
  EXPECT_EQ(values(found[0]), (std::vector<double>{8, 10, 12}));
}

TEST_F(Trace, TakesCallsOfTensorsFromOutside) {
  const Tensor x = tensor({1, 2}, {2}), w = tensor({10, 20}, {2});
  const Graph graph =
      make_graph([&](std::span<const Tensor> in) { return std::vector<Tensor>{multiply(in[0], exp(w))}; }, {&x, 1});
  EXPECT_EQ(graph.size(), 2u);
  EXPECT_EQ(graph.constants().size(), 1u);
}

// As in the contract, if the calling program did not state their meaning.
TEST_F(Trace, NumbersInTensorPositionsAreMarked) {
  const Tensor x = tensor({1, 2}, {2});
  const Graph graph = make_graph(
      [](std::span<const Tensor> in) {
        return std::vector<Tensor>{call(find_op("bp::add"), {value(in[0]), value(int64_t{1})})};
      },
      {&x, 1});
  EXPECT_NO_THROW(core::graph::verify(*graph.get()));
}

TEST_F(Trace, LinesComeFromWhoeverIsAsked) {
  const Tensor x = tensor({1, 2}, {2});
  int32_t line = 0;
  TraceScope scope("make_graph", [&] { return SourceLine{"model.py", "f", ++line}; });
  const Tensor in = scope.enter(x, "x");
  const Tensor results[] = {add(exp(in), in)};
  const Graph graph = scope.leave(results);
  EXPECT_EQ(graph.node(0).line.line, 1);
  EXPECT_EQ(graph.node(1).line.line, 2);
  EXPECT_EQ(graph.node(1).line.file, "model.py");
}

TEST_F(Trace, AGeneratorIsNotMovedOnUntilAReplay) {
  bp_generator_state state{5, 100};
  const Graph graph = [&] {
    TraceScope scope;
    const bp_generator_state drawn = reserve_random(state, 7);
    EXPECT_NE(drawn.key, 5u);
    return scope.leave({});
  }();
  EXPECT_EQ(state.counter, 100u);
  ASSERT_EQ(graph.generators().size(), 1u);
  bp_generator_state* const generators[] = {&state};
  graph.call({}, generators);
  EXPECT_EQ(state.counter, 107u);
  EXPECT_THROW(graph.call({}), Error);
}

TEST_F(Trace, ScopesEndInTheReverseOrderAndEndWhenAFunctionThrows) {
  const Tensor x = tensor({1, 2}, {2});
  EXPECT_THROW(
      make_graph([](std::span<const Tensor>) -> std::vector<Tensor> { throw Error(BP_ERROR_VALUE, "no"); }, {&x, 1}),
      Error);
  EXPECT_FALSE(transforms_active());
  EXPECT_EQ(values(add(x, x)), (std::vector<double>{2, 4}));
}

}  // namespace
}  // namespace backplane::testing
