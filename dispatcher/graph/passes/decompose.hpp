// Decomposition as a pass: nodes become the ops that their entries' formulas call, down to a named set.
#pragma once

#include <functional>

#include "graph/graph.hpp"

namespace backplane::core::graph {

// Whether a node of the op on the device is to stay whole.
using KeepsOp = std::function<bool(const OpEntry& op, const Device& device)>;

// Replaces nodes that are not kept, and what comes of them likewise, where the entry has a decomposition; how many.
// What draws random numbers, takes a function, or has sizes that are not known stays. A node whose formula refuses
// stays, and says why when it is run.
size_t decompose(Graph& graph, const KeepsOp& keeps);

// Those of which the device has no kernel: then their parts can be planned, and fused, where a whole call could not.
size_t decompose_without_kernel(Graph& graph);

}  // namespace backplane::core::graph
