// What a derivative keeps of a graph's inputs where the graph updates them.
#pragma once

#include <vector>

#include "backplane/tensor.hpp"
#include "graph/graph.hpp"

namespace backplane::core::graph {

// The inputs, where a transform or the tape follows one: with recorded copies of those that will be updated, whose
// values from before the update a backward pass may read.
std::vector<Tensor> inputs_to_keep(const Graph& graph, std::span<const Tensor> inputs);
// The same for the constants.
std::vector<Tensor> constants_to_keep(const Graph& graph);

}  // namespace backplane::core::graph
