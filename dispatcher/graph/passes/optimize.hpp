// The passes that a graph goes through before it is planned, in their order.
#pragma once

#include "graph/graph.hpp"

namespace backplane::core::graph {

// A graph that gives the same, from the same inputs and draws; verified after each pass, a large one after the last.
std::shared_ptr<const Graph> optimize(const Graph& graph);
// The same without decompositions: for a graph that is differentiated, with the derivatives of its ops and not of their
// parts.
std::shared_ptr<const Graph> optimize_whole_ops(const Graph& graph);

}  // namespace backplane::core::graph
