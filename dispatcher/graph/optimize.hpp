// The passes that a graph goes through before it is planned, in their order.
#pragma once

#include "graph/graph.hpp"

namespace backplane::core::graph {

// A graph that gives the same, from the same inputs and draws. Debug builds verify it after each pass.
std::shared_ptr<const Graph> optimize(const Graph& graph);

}  // namespace backplane::core::graph
