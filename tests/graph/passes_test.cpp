// Each pass keeps the meaning: of random graphs, to the bit, with a verified graph after it. And each does what it is
// for, in time that grows with the graph.
#include <gtest/gtest.h>

#include "graph/common_subexpressions.hpp"
#include "graph/constant_folding.hpp"
#include "graph/dead_code.hpp"
#include "graph/executable.hpp"
#include "graph/optimize.hpp"
#include "graph/parse.hpp"
#include "graph/print.hpp"
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
    Executable before(graph, {.donated = {}, .plans = false}), then(after, {.donated = {}, .plans = false});
    ASSERT_EQ(bytes_of(then.run(inputs)), bytes_of(before.run(inputs))) << print(*graph) << print(*after);
    EXPECT_EQ(pass(*after), 0u) << "a second time there is nothing left to do\n" << print(*after);
  }
  EXPECT_GT(changes, 100u);
}

TEST_F(Passes, DeadCodeKeepsTheMeaning) { expect_meaning_kept(remove_dead_code, 21); }
TEST_F(Passes, CommonSubexpressionsKeepTheMeaning) { expect_meaning_kept(merge_common_subexpressions, 22); }
TEST_F(Passes, ConstantFoldingKeepsTheMeaning) { expect_meaning_kept(fold_constants, 23); }

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
    output %3, %4, %5, %6 })");
  EXPECT_EQ(merge_common_subexpressions(*graph), 2u);
  EXPECT_EQ(graph->outputs[1], graph->outputs[2]);
  EXPECT_NE(graph->outputs[1], graph->outputs[3]);
}

TEST_F(Passes, WhatMayChangeIsNotFolded) {
  Graph graph;
  const Tensor c = backplane::testing::tensor({1, 2}, {2});
  const ValueId live = graph.add_constant(c, "", true), fixed = graph.add_constant(c);
  graph.outputs = {emit(graph, "negative", {Argument::of(live)}), emit(graph, "negative", {Argument::of(fixed)})};
  EXPECT_EQ(fold_constants(graph), 1u);
  ASSERT_EQ(graph.nodes().size(), 1u);
  EXPECT_EQ(graph.outputs[0], graph.node(0).first_result);
}

TEST_F(Passes, LargeResultsAreNotFolded) {
  auto graph = parse(R"(graph "f" {
    %0: float64[1000000] "null" = bp::full([1000000], 1.0, dtype=float64, device=device("null"))
    %1: float64[3] "null" = bp::full([3], 1.0, dtype=float64, device=device("null"))
    output %0, %1 })");
  EXPECT_EQ(fold_constants(*graph), 1u);
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
