// Lets nodes that compute the same be one.
#pragma once

#include "graph/graph.hpp"

namespace backplane::core::graph {

// Returns how many nodes were removed. Nodes of one op with equal arguments are equal, unless one is computed again on
// purpose. Random ops are equal where they take the same counters. Linear but for the hash table.
size_t merge_common_subexpressions(Graph& graph);

}  // namespace backplane::core::graph
