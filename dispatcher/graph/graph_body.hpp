// A graph as a function: a Graph argument of control flow. It uses nothing but its arguments, and runs from plans.
#pragma once

#include "functions/closed_function.hpp"
#include "graph/executable.hpp"

namespace backplane::core::graph {

// A handle of the value's form, without data. Throws where a size is no number.
Tensor example_of_value(const Graph& graph, ValueId value);

class GraphBody final : public ClosedFunction {
 public:
  explicit GraphBody(std::shared_ptr<const Graph> graph)
      : ClosedFunction(graph->name, true), graph_(graph), executable_(std::move(graph)) {}
  std::vector<Tensor> call(std::span<const Tensor> args) override { return executable_.run(args); }
  const std::shared_ptr<const Graph>& graph() const { return graph_; }
  // Handles of the results' forms, without data. Throws where a size is no number.
  std::vector<Tensor> result_examples() const;

 private:
  std::shared_ptr<const Graph> graph_;
  Executable executable_;
};

}  // namespace backplane::core::graph
