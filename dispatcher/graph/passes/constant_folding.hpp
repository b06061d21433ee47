// Computes once, ahead, what depends on no input.
#pragma once

#include "graph/graph.hpp"

namespace backplane::core::graph {

// Returns how many nodes became constants. It skips nodes that take random numbers or a function. It skips nodes of a
// constant that may change (Constant::live) or on a size that is not known, and results larger than a page that nothing
// smaller than they are was the price of. A node that fails is left to fail where it runs.
size_t fold_constants(Graph& graph);

}  // namespace backplane::core::graph
