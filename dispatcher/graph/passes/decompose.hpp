// Decomposition as a pass: nodes become the ops that their entries' formulas call, down to a named set.
#pragma once

#include <functional>

#include "graph/graph.hpp"

namespace backplane::core::graph {

// Whether a node of the op on the device is to stay whole.
using KeepsOp = std::function<bool(const OpEntry& op, const Device& device)>;

// Replaces nodes that are not kept by their decompositions, repeatedly; returns how many.
// Nodes that draw random numbers, take a function, or have unknown sizes stay. A node whose formula refuses
// stays, and says why when it is run.
size_t decompose(Graph& graph, const KeepsOp& keeps);

// Only nodes without a kernel on the device: their parts can be planned and fused, but the whole calls cannot.
size_t decompose_without_kernel(Graph& graph);

}  // namespace backplane::core::graph
