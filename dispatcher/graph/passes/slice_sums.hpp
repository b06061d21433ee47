// Sums of slices: the gradient of a tensor that was cut into slices is a sum of tensors, each of them zero but for one
// slice. Where the slices lie side by side along one axis, and leave nothing out, that sum is their concatenation.
#pragma once

#include "graph/graph.hpp"

namespace backplane::core::graph {

// Returns how many sums it replaced; the result keeps its bits. It needs sizes that are numbers. Linear.
size_t join_slice_sums(Graph& graph);

}  // namespace backplane::core::graph
