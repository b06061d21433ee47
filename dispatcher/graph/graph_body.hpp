// A graph as a function: a Graph argument of control flow. It uses nothing but its arguments, and runs from plans.
#pragma once

#include "functions/closed_function.hpp"
#include "graph/passes/moved_outputs.hpp"
#include "graph/plans/executable.hpp"

namespace backplane::core::graph {

// A handle of the value's form, without data. Throws if a size is not a number.
Tensor example_of_value(const Graph& graph, ValueId value);

// Throws where the graph holds the ops of a function with rules of its own, and somebody would differentiate them.
void check_own_rules(const Graph& graph, std::span<const Tensor> args);

class GraphBody final : public ClosedFunction {
 public:
  explicit GraphBody(std::shared_ptr<const Graph> graph)
      : ClosedFunction(graph->name, true), graph_(graph), executable_(std::move(graph)) {}
  // Refuses to be differentiated where the rules of a function would be lost (Graph::own_rules).
  std::vector<Tensor> call(std::span<const Tensor> args) override;
  std::vector<uint64_t> moves() const override { return moved_outputs(*graph_); }
  std::vector<uint64_t> forward_moves() const override { return moved_outputs(*graph_, MoveMode::kForward); }
  const std::shared_ptr<const Graph>& graph() const { return graph_; }
  // Handles of the results' forms, without data. Throws if a size is not a number.
  std::vector<Tensor> result_examples() const;
  std::vector<Tensor> result_forms(std::span<const Tensor>) const override { return result_examples(); }

 private:
  std::shared_ptr<const Graph> graph_;
  Executable executable_;
};

// What a node calls for a Graph argument: a RuledGraph if the graph has rules, else a GraphBody.
std::shared_ptr<GraphFunction> function_of(const std::shared_ptr<const Graph>& graph);

}  // namespace backplane::core::graph
