// Making a plan: which nodes become kernel calls with arguments known ahead, which views that cost nothing, which calls
// through the dispatcher; then which memory their values take.
#pragma once

#include "graph/plans/plan.hpp"

namespace backplane::core::graph {

// For inputs of these shapes, which fit the graph, and the symbols' values that follow. Starts the graph's devices.
// `donated`: per input, or empty. `use_compilers`: parts may go to those of backends. Throws Error with the node.
std::unique_ptr<PlanData> build_plan(std::shared_ptr<const Graph> graph, std::vector<int64_t> symbols,
                                     std::span<const Tensor> inputs, const std::vector<bool>& donated,
                                     bool use_compilers, std::span<const std::shared_ptr<GraphFunction>> functions);

}  // namespace backplane::core::graph
