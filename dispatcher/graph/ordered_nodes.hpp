// Nodes that keep their order and are never dropped: calls of ordered ops, also within a function that a node takes.
#pragma once

#include <vector>

#include "graph/graph.hpp"

namespace backplane::core::graph {

bool is_ordered(const Graph& graph, const Node& node);
// In the order of the graph.
std::vector<NodeId> ordered_nodes(const Graph& graph);

}  // namespace backplane::core::graph
