#include "graph/passes/moved_outputs.hpp"

#include "graph/passes/moves_in_mode.hpp"

namespace backplane::core::graph {

std::vector<bool> constant_outputs(const Graph& graph, const std::vector<bool>& wanted) {
  return constant_outputs_in(MoveMode::kReverse, graph, wanted);
}

std::vector<uint64_t> moved_outputs(const Graph& graph) { return moved_outputs_in(MoveMode::kReverse, graph); }

}  // namespace backplane::core::graph
