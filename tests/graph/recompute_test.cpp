// Values computed again under a memory budget: the same bits from fewer bytes, the cheapest first.
#include "graph/passes/recompute.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "graph/passes/optimize.hpp"
#include "graph/plans/executable.hpp"
#include "graph/text/parse.hpp"
#include "graph/text/print.hpp"
#include "graph/verify.hpp"
#include "random_graph.hpp"

namespace backplane::core::graph {
namespace {

using namespace graph::testing;

class Recompute : public ::testing::Test {
 protected:
  void SetUp() override { backplane::testing::null_backend(); }
};

// Values of 8000 bytes, each half the one before; then all are added up, the last one first, as a backward pass does.
std::shared_ptr<const Graph> mirrored(int length) {
  const auto line = [](int id, const std::string& call) {
    return "%" + std::to_string(id) + ": float64[1000] \"null\" = bp::" + call + "\n";
  };
  const auto name = [](int id) { return "%" + std::to_string(id); };
  std::string text = "graph \"mirrored\" { input %0 \"x\": float64[1000] \"null\"\n";
  for (int i = 1; i <= length; ++i) text += line(i, "multiply(" + name(i - 1) + ", 0.5)");
  int sum = length;
  for (int i = length - 1; i >= 1; --i, ++sum)
    text += line(2 * length - i, "add(" + name(i == length - 1 ? length : sum) + ", " + name(i) + ")");
  return parse(text + "output " + name(2 * length - 1) + " }");
}

size_t nodes_of(const Graph& graph, const std::string& op) {
  return static_cast<size_t>(std::count_if(graph.nodes().begin(), graph.nodes().end(),
                                           [&](const Node& node) { return node.op->record->name == "bp::" + op; }));
}

TEST_F(Recompute, KeepsTheMeaning) {
  std::mt19937 random(31);
  size_t nodes = 0;
  for (int round = 0; round < 300; ++round) {
    const std::shared_ptr<Graph> graph = random_graph(random, 1 + static_cast<int>(random() % 40));
    const std::vector<Tensor> inputs = random_inputs(random);
    Executable plain(graph, {{}, false});
    const auto expected = bytes_of(plain.run(inputs));
    for (const uint64_t budget : {0, 200, 500}) {
      const Recomputation made = recompute(graph, budget);
      verify(*made.graph);
      EXPECT_LE(made.after, made.before);
      EXPECT_EQ(made.nodes == 0, made.graph == graph);
      nodes += made.nodes;
      Executable again(made.graph), within(graph, {{.donated = {}, .memory_budget = budget}});
      ASSERT_EQ(bytes_of(again.run(inputs)), expected) << budget << print(*graph) << print(*made.graph);
      ASSERT_EQ(bytes_of(within.run(inputs)), expected) << budget << print(*graph);
    }
  }
  EXPECT_GT(nodes, 300u);
}

TEST_F(Recompute, WhatFitsStaysAsItIs) {
  const std::shared_ptr<const Graph> graph = mirrored(30);
  const Recomputation made = recompute(graph, 31 * 8000);
  EXPECT_EQ(made.graph, graph);
  EXPECT_EQ(made.before, 31u * 8000);
  EXPECT_EQ(made.nodes, 0u);
}

TEST_F(Recompute, AMirroredChainFitsIntoAThird) {
  const std::shared_ptr<const Graph> graph = mirrored(30);
  const Recomputation made = recompute(graph, 10 * 8000);
  EXPECT_LE(made.after, 10u * 8000);
  EXPECT_EQ(nodes_of(*made.graph, "add"), 29u);
  EXPECT_LE(nodes_of(*made.graph, "multiply"), 30u * 3);
  Executable whole(graph), within(graph, {{.donated = {}, .memory_budget = 10 * 8000}});
  const std::vector<Tensor> x = {backplane::testing::tensor(std::vector<double>(1000, 3), {1000})};
  EXPECT_EQ(bytes_of(within.run(x)), bytes_of(whole.run(x)));
  EXPECT_LE(within.summary(x).arena, 10u * 8000);
  EXPECT_GE(whole.summary(x).arena, 29u * 8000);
  EXPECT_NE(within.explain_run(x).find(": kept, "), std::string::npos);
}

// `%2` reads a thousand times the bytes that `%1` does, for a result of the same size.
TEST_F(Recompute, TheCheaperOfTwoGoes) {
  const std::shared_ptr<const Graph> graph = parse(R"(graph "f" {
    input %0 "x": float64[100, 100] "null"
    input %1 "y": float64[100] "null"
    %2: float64[100] "null" = bp::sum(%0, [1])
    %3: float64[100] "null" = bp::negative(%1)
    %4: float64[100] "null" = bp::add(%2, %3)
    %5: float64[100, 100] "null" = bp::multiply(%0, %4)
    %6: float64[100] "null" = bp::sum(%5, [0])
    %7: float64[100] "null" = bp::add(%6, %2)
    %8: float64[100] "null" = bp::multiply(%7, %3)
    output %8 })");
  const Recomputation made = recompute(graph, 100 * 100 * 8 + 3 * 800 - 1);
  EXPECT_EQ(nodes_of(*made.graph, "negative"), 2u) << print(*made.graph);
  EXPECT_EQ(nodes_of(*made.graph, "sum"), 2u);
  EXPECT_EQ(made.after, made.before - 800);
}

// No pass takes the second run for the first.
TEST_F(Recompute, LaterPassesLeaveTheSecondRun) {
  const Recomputation made = recompute(mirrored(30), 10 * 8000);
  const std::shared_ptr<const Graph> better = optimize(*made.graph);
  EXPECT_EQ(nodes_of(*better, "multiply"), nodes_of(*made.graph, "multiply"));
}

TEST_F(Recompute, ALongGraphTakesTimeThatGrowsWithIt) {
  const Recomputation made = recompute(mirrored(20000), 10000 * 8000);
  EXPECT_LT(made.after, made.before);
  verify(*made.graph);
}

}  // namespace
}  // namespace backplane::core::graph
