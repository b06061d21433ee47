// Each pass keeps the meaning: of random graphs, to the bit, with a verified graph after it. And each serves its
// purpose, in time that grows with the graph.
#include <gtest/gtest.h>

#include <algorithm>

#include "graph/passes/common_subexpressions.hpp"
#include "graph/passes/constant_folding.hpp"
#include "graph/passes/dead_code.hpp"
#include "graph/passes/decompose.hpp"
#include "graph/passes/optimize.hpp"
#include "graph/passes/rewrite.hpp"
#include "graph/plans/executable.hpp"
#include "graph/text/parse.hpp"
#include "graph/text/print.hpp"
#include "graph/verify.hpp"
#include "random_graph.hpp"

namespace backplane::core::graph {
namespace {

using namespace graph::testing;

class Passes : public ::testing::Test {
 protected:
  void SetUp() override { backplane::testing::null_backend(); }
};

void expect_meaning_kept(size_t (*pass)(Graph&), uint32_t seed) {
  std::mt19937 random(seed);
  size_t changes = 0;
  for (int round = 0; round < 200; ++round) {
    const std::shared_ptr<Graph> graph = random_graph(random, 1 + static_cast<int>(random() % 40));
    const std::shared_ptr<Graph> after = graph->clone();
    ASSERT_EQ(print(*after), print(*graph));
    changes += pass(*after);
    verify(*after);
    EXPECT_LE(after->nodes().size(), graph->nodes().size());
    const std::vector<Tensor> inputs = random_inputs(random);
    Executable before(graph, {{}, false}), then(after, {{}, false});
    ASSERT_EQ(bytes_of(then.run(inputs)), bytes_of(before.run(inputs))) << print(*graph) << print(*after);
    EXPECT_EQ(pass(*after), 0u) << "a second time there is nothing left to do\n" << print(*after);
  }
  EXPECT_GT(changes, 100u);
}

TEST_F(Passes, DeadCodeKeepsTheMeaning) { expect_meaning_kept(remove_dead_code, 21); }
TEST_F(Passes, CommonSubexpressionsKeepTheMeaning) { expect_meaning_kept(merge_common_subexpressions, 22); }
TEST_F(Passes, ConstantFoldingKeepsTheMeaning) { expect_meaning_kept(fold_constants, 23); }

TEST_F(Passes, RewritesKeepTheMeaning) { expect_meaning_kept(rewrite, 25); }

// `square` has no kernel there.
TEST_F(Passes, DecompositionKeepsTheMeaning) {
  std::mt19937 random(26);
  size_t changes = 0;
  for (int round = 0; round < 200; ++round) {
    const std::shared_ptr<Graph> graph = random_graph(random, 1 + static_cast<int>(random() % 40));
    const std::shared_ptr<Graph> after = graph->clone();
    changes += decompose_without_kernel(*after);
    verify(*after);
    for (const Node& node : after->nodes()) EXPECT_NE(std::string_view(node.op->record->name), "bp::square");
    const std::vector<Tensor> inputs = random_inputs(random);
    Executable before(graph, {{}, false}), then(after, {{}, false});
    ASSERT_EQ(bytes_of(then.run(inputs)), bytes_of(before.run(inputs))) << print(*graph) << print(*after);
    EXPECT_EQ(decompose_without_kernel(*after), 0u);
  }
  EXPECT_GT(changes, 100u);
}

TEST_F(Passes, DecompositionEndsAtTheNamedSet) {
  const char* text = R"(graph "f" {
    input %0 "x": float64[2, 3] "null"
    %1: float64[2, 3] "null" = bp::softmax(%0, [1])
    output %1 })";
  const auto has = [](const Graph& graph, std::string_view op) {
    return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                       [&](const Node& node) { return node.op->record->name == op; });
  };
  auto whole = parse(text), parts = parse(text);
  const auto keeps_named = [](const OpEntry& op, const Device&) { return op.record->name == "bp::softmax"; };
  EXPECT_EQ(decompose(*whole, keeps_named), 0u);
  EXPECT_TRUE(has(*whole, "bp::softmax"));
  EXPECT_EQ(decompose(*parts, [](const OpEntry&, const Device&) { return false; }), 1u);
  verify(*parts);
  for (const Node& node : parts->nodes())
    EXPECT_TRUE(!node.op->decompose || (node.op->flags & (BP_OP_VIEW | BP_OP_MAYBE_VIEW)));
  EXPECT_FALSE(has(*parts, "bp::softmax"));
}

TEST_F(Passes, WhatTheCallerSeesIsNotReplacedByWhatIsThere) {
  auto graph = parse(R"(graph "f" {
    input %0 "x": float64[2, 3] "null"
    %1: float64[2, 3] "null" = bp::negative(%0)
    %2: float64[2, 3] "null" = bp::negative(%1)
    %3: float64[2, 3] "null" = bp::negative(%2)
    %4: float64[2, 3] "null" = bp::negative(%3)
    %5: float64[2, 3] "null" = bp::exp(%4)
    %6: float64[3, 2] "null" = bp::permute_dims(%0, [1, 0])
    %7: float64[2, 3] "null" = bp::permute_dims(%6, [-1, 0])
    output %2, %5, %7 })");
  EXPECT_GT(rewrite(*graph), 0u);
  remove_dead_code(*graph);
  // One view of the argument is another one; a tensor of its own stays one.
  EXPECT_NE(graph->outputs[0], graph->inputs()[0].value);
  EXPECT_EQ(graph->outputs[2], graph->inputs()[0].value);
  EXPECT_EQ(graph->arguments(graph->node(graph->value(graph->outputs[1]).node))[0].value(), graph->inputs()[0].value);
}

TEST_F(Passes, DeadCodeGoesAndTheRestStays) {
  auto graph = parse(R"(graph "f" {
    input %0 "x": float64[2] "null"
    %1: float64[2] "null" = bp::negative(%0)
    %2: float64[2] "null" = bp::negative(%1)
    %3: float64[2] "null" = bp::exp(%1)
    output %3 })");
  EXPECT_EQ(remove_dead_code(*graph), 1u);
  EXPECT_EQ(graph->nodes().size(), 2u);
}

TEST_F(Passes, EqualNodesBecomeOne) {
  auto graph = parse(R"(graph "f" {
    input %0 "x": float64[2] "null"
    %1: float64[2] "null" = bp::multiply(%0, 2.0)
    %2: float64[2] "null" = bp::multiply(%0, 2.0)
    %3: float64[2] "null" = bp::multiply(%0, 3.0)
    %4: float64[2] "null" = bp::exp(%1)
    %5: float64[2] "null" = bp::exp(%2)
    %6: float64[2] "null" = recomputed bp::exp(%1)
    %7: float64[2] "null" = bp::add(%4, %5)
    %8: float64[2] "null" = bp::add(%4, %6)
    output %3, %7, %8 })");
  EXPECT_EQ(merge_common_subexpressions(*graph), 2u);
  const auto operands = [&](size_t output) {
    return graph->arguments(graph->node(graph->value(graph->outputs[output]).node));
  };
  EXPECT_EQ(operands(1)[0].value(), operands(1)[1].value());
  EXPECT_NE(operands(2)[0].value(), operands(2)[1].value());
}

// The caller may change them in place, one by one and between runs.
TEST_F(Passes, ResultsOfTheCallerAreTensorsOfTheirOwn) {
  auto graph = parse(R"(graph "f" {
    input %0 "x": float64[2] "null"
    %1: float64[2] "null" = bp::exp(%0)
    %2: float64[2] "null" = bp::exp(%0)
    %3: float64[2] "null" = bp::full([2], 1.0, dtype=float64, device=device("null"))
    %4: float64[1, 2] "null" = bp::reshape(%2, [1, 2])
    output %1, %4, %3 })");
  const std::shared_ptr<const Graph> better = optimize(*graph);
  EXPECT_NE(better->outputs[0], better->arguments(better->node(better->value(better->outputs[1]).node))[0].value());
  EXPECT_EQ(better->value(better->outputs[2]).kind, Value::Kind::kResult);
}

TEST_F(Passes, WhatMayChangeIsNotFolded) {
  Graph graph;
  const Tensor c = backplane::testing::tensor({1, 2}, {2});
  const ValueId live = graph.add_constant(c, "", true), fixed = graph.add_constant(c);
  const ValueId changing = emit(graph, "negative", {Argument::of(live)}),
                folded = emit(graph, "negative", {Argument::of(fixed)});
  graph.outputs = {emit(graph, "add", {Argument::of(changing), Argument::of(folded)})};
  EXPECT_EQ(fold_constants(graph), 1u);
  ASSERT_EQ(graph.nodes().size(), 2u);
  EXPECT_EQ(graph.arguments(graph.node(1))[0].value(), graph.node(0).first_result);
}

TEST_F(Passes, LargeResultsAreNotFolded) {
  auto graph = parse(R"(graph "f" {
    %0: float64[1000000] "null" = bp::full([1000000], 1.0, dtype=float64, device=device("null"))
    %1: float64[3] "null" = bp::full([3], 1.0, dtype=float64, device=device("null"))
    %2: float64[1000000] "null" = bp::multiply(%0, 2.0)
    %3: float64[3] "null" = bp::multiply(%1, 2.0)
    %4: float64[3] "null" = bp::exp(%3)
    output %2, %4 })");
  EXPECT_EQ(fold_constants(*graph), 2u);
}

TEST_F(Passes, AHundredThousandNodesGoThrough) {
  std::mt19937 random(24);
  Graph graph;
  graph.name = "long";
  const Dim dims[] = {3, 4};
  std::vector<ValueId> values = {graph.add_input("x", {BP_FLOAT64, backplane::testing::null_backend(), dims})};
  const OpEntry& add = checked_entry(find_op("bp::add"));
  const Type type{BP_FLOAT64, backplane::testing::null_backend(), dims};
  for (int i = 0; i < 100000; ++i) {
    const Argument args[] = {Argument::of(values[values.size() - 1 - random() % std::min<size_t>(values.size(), 3)]),
                             Argument::of(values[random() % values.size()])};
    values.push_back(graph.node(graph.add_node(add, args, {&type, 1})).first_result);
  }
  graph.outputs = {values.back()};
  const std::string text = print(graph);
  const auto read = parse(text);
  EXPECT_EQ(print(*read), text);
  const auto better = optimize(graph);
  verify(*better);
  EXPECT_LT(better->nodes().size(), graph.nodes().size());
  Executable executable(better);
  const std::vector<Tensor> inputs = {random_tensor({3, 4}, random)};
  const PlanSummary summary = executable.summary(inputs);
  EXPECT_EQ(summary.kernels, better->nodes().size());
  EXPECT_LT(summary.arena, summary.separate);
  executable.run(inputs);
}

}  // namespace
}  // namespace backplane::core::graph
