// Nodes that keep their order and are never dropped: calls of ordered ops, also within a function that a node takes.
#pragma once

#include <algorithm>
#include <vector>

#include "graph/graph.hpp"
#include "registry/ordered_ops.hpp"

namespace backplane::core::graph {

inline std::vector<NodeId> ordered_nodes(const Graph& graph);

inline bool is_ordered(const Graph& graph, const Node& node) {
  if (node.op->flags & kOrdered) return true;
  if (!(node.op->flags & BP_OP_HIGHER_ORDER)) return false;
  const auto arguments = graph.arguments(node);
  return std::any_of(arguments.begin(), arguments.end(), [&](const Argument& a) {
    return a.is_graph() && !ordered_nodes(*graph.graphs[a.graph()]).empty();
  });
}

// In the order of the graph.
inline std::vector<NodeId> ordered_nodes(const Graph& graph) {
  std::vector<NodeId> found;
  for (NodeId id = 0; id < graph.nodes().size(); ++id)
    if (!graph.is_erased(id) && is_ordered(graph, graph.node(id))) found.push_back(id);
  return found;
}

}  // namespace backplane::core::graph
