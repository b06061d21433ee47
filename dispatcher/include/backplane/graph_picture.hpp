// Pictures of graphs, as text for Graphviz, and what their nodes cost.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backplane/graph.hpp"

namespace backplane {

enum class GraphColors { kBackend, kBytes, kFlops };

// The graph as it would run for inputs of these sizes: coloured by who runs each node, or by the bytes that it reads
// and writes, or by its operations. Throws Error where the graph cannot be planned, as one whose sizes depend on
// values.
BACKPLANE_API std::string graph_dot(const Graph& graph, std::span<const Tensor> inputs, GraphColors colors);

struct NodeCost {
  std::string op_name;
  // Operations: one per element that a primitive computes, two per term of a product. Any other op has the operations
  // of its decomposition. Empty if unknown.
  std::optional<uint64_t> flops;
  uint64_t bytes = 0;  // read and written; of a view none
};

// Of the graph as it would run for inputs of these sizes, node by node. Throws Error where they do not fit.
BACKPLANE_API std::vector<NodeCost> graph_costs(const Graph& graph, std::span<const Tensor> inputs);

}  // namespace backplane
