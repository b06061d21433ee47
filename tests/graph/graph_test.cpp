// Editing a graph: after any inserts, replacements and removals, `compact` leaves the graph that a plain list of the
// same nodes, edited the same way, would be.
#include <gtest/gtest.h>

#include <list>
#include <random>

#include "graph/interpret.hpp"
#include "graph/text/print.hpp"
#include "graph/verify.hpp"
#include "null_backend.hpp"

namespace backplane::core::graph {
namespace {

class GraphEdit : public ::testing::Test {
 protected:
  bp_device device_ = backplane::testing::null_backend();
  const OpEntry& add_ = checked_entry(find_op("bp::add"));
  const OpEntry& concat_ = checked_entry(find_op("bp::concat"));
  Type type_{BP_FLOAT64, device_, {}};

  std::vector<double> run(const Graph& graph, double x, double y) {
    const Tensor inputs[] = {backplane::testing::scalar(x), backplane::testing::scalar(y)};
    std::vector<double> found;
    for (const Tensor& t : interpret(graph, inputs, {}, {}, {})) found.push_back(backplane::testing::item(t));
    return found;
  }
};

TEST_F(GraphEdit, WhatIsInsertedStandsBeforeInTheOrderOfInsertion) {
  Graph graph;
  const ValueId x = graph.add_input("x", type_), y = graph.add_input("y", type_);
  const auto sum = [&](ValueId a, ValueId b) { return std::vector<Argument>{Argument::of(a), Argument::of(b)}; };
  const NodeId last = graph.add_node(add_, sum(x, y), {&type_, 1});
  const NodeId first = graph.insert_node(last, add_, sum(x, x), {&type_, 1});
  const ValueId doubled = graph.node(first).first_result;
  const NodeId second = graph.insert_node(last, add_, sum(doubled, doubled), {&type_, 1});
  graph.insert_node(first, add_, sum(y, y), {&type_, 1});
  graph.set_arguments(last, sum(graph.node(second).first_result, y));
  graph.outputs = {graph.node(last).first_result, doubled};
  graph.compact();
  verify(graph);
  EXPECT_EQ(graph.nodes().size(), 4u);
  EXPECT_EQ(run(graph, 3, 5), (std::vector<double>{17, 6}));
}

TEST_F(GraphEdit, UsesFollowReplacementsAndUnusedConstantsGo) {
  Graph graph;
  const ValueId x = graph.add_input("x", type_), y = graph.add_input("y", type_);
  const ValueId kept = graph.add_constant(backplane::testing::scalar(7));
  graph.add_constant(backplane::testing::scalar(8));
  const Argument xy[] = {Argument::of(x), Argument::of(y)}, xk[] = {Argument::of(x), Argument::of(kept)};
  const NodeId a = graph.add_node(add_, xy, {&type_, 1}), b = graph.add_node(add_, xk, {&type_, 1});
  const Argument ab[] = {Argument::of(graph.node(a).first_result), Argument::of(graph.node(b).first_result)};
  const NodeId c = graph.add_node(add_, ab, {&type_, 1});
  graph.outputs = {graph.node(c).first_result, graph.node(a).first_result};
  graph.replace_uses(graph.node(a).first_result, y);
  graph.erase(a);
  graph.compact();
  verify(graph);
  EXPECT_EQ(graph.constants().size(), 1u);
  EXPECT_EQ(run(graph, 3, 5), (std::vector<double>{15, 5}));
}

TEST_F(GraphEdit, AUseOfAnErasedNodeIsAnError) {
  Graph graph;
  const ValueId x = graph.add_input("x", type_);
  const Argument xx[] = {Argument::of(x), Argument::of(x)};
  const NodeId a = graph.add_node(add_, xx, {&type_, 1});
  graph.outputs = {graph.node(a).first_result};
  graph.erase(a);
  EXPECT_THROW(graph.compact(), Error);
}

TEST_F(GraphEdit, ListsAreEachNodesOwn) {
  Graph graph;
  const Dim one = 1, two = 2;
  const Type vector{BP_FLOAT64, device_, {&one, 1}}, both{BP_FLOAT64, device_, {&two, 1}};
  const ValueId x = graph.add_input("x", vector), y = graph.add_input("y", vector);
  const ValueId pair[] = {x, y};
  const Argument args[] = {graph.list(pair), Argument{value(int64_t{0})}};
  const NodeId a = graph.add_node(concat_, args, {&both, 1}), b = graph.add_node(concat_, args, {&both, 1});
  graph.outputs = {graph.node(a).first_result, graph.node(b).first_result};
  graph.compact();
  const std::unique_ptr<Graph> copy = graph.clone();
  copy->replace_uses(x, y);
  copy->compact();
  verify(graph);
  verify(*copy);
  EXPECT_EQ(graph.arguments(graph.node(0))[0].values()[0], x);
  EXPECT_EQ(graph.arguments(graph.node(1))[0].values()[0], x);
  EXPECT_EQ(copy->arguments(copy->node(1))[0].values()[0], y);
}

// A list of (id, arguments), which is edited beside the graph.
struct Plain {
  int id;
  int a, b;
};

TEST_F(GraphEdit, RandomEditsLeaveWhatAPlainListWouldBe) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    Graph graph;
    const ValueId inputs[] = {graph.add_input("x", type_), graph.add_input("y", type_)};
    std::list<Plain> plain;
    std::vector<NodeId> node_of(2, kNone);  // by id; 0 and 1 are the inputs
    const auto value_of = [&](int id) {
      return id < 2 ? inputs[id] : graph.node(node_of[static_cast<size_t>(id)]).first_result;
    };
    for (int step = 0; step < 60; ++step) {
      // Before a random place, with operands from before it.
      auto place = plain.begin();
      std::advance(place, static_cast<long>(random() % (plain.size() + 1)));
      std::vector<int> known{0, 1};
      for (auto it = plain.begin(); it != place; ++it) known.push_back(it->id);
      const int a = known[random() % known.size()], b = known[random() % known.size()];
      const Argument args[] = {Argument::of(value_of(a)), Argument::of(value_of(b))};
      const int id = static_cast<int>(node_of.size());
      node_of.push_back(place == plain.end()
                            ? graph.add_node(add_, args, {&type_, 1})
                            : graph.insert_node(node_of[static_cast<size_t>(place->id)], add_, args, {&type_, 1}));
      plain.insert(place, {id, a, b});
    }
    std::vector<double> found(node_of.size());
    found[0] = 1, found[1] = 0.5;
    for (const Plain& p : plain)
      found[static_cast<size_t>(p.id)] = found[static_cast<size_t>(p.a)] + found[static_cast<size_t>(p.b)];
    std::vector<double> expected;
    for (size_t id = 2; id < node_of.size(); ++id) {
      graph.outputs.push_back(value_of(static_cast<int>(id)));
      expected.push_back(found[id]);
    }
    graph.compact();
    verify(graph);
    EXPECT_EQ(run(graph, 1, 0.5), expected) << "seed " << seed << "\n" << print(graph);
  }
}

}  // namespace
}  // namespace backplane::core::graph
