// Erases nodes that no result of the graph needs, and copies. Calls of ordered ops stay.
#pragma once

#include <span>
#include <vector>

#include "graph/graph.hpp"

namespace backplane::core::graph {

// How many nodes went. Linear. Random ops go too: their draws stay, so that the others' counters do.
size_t remove_dead_code(Graph& graph);

// Replaces copies by their sources, and counts them: copies of a tensor that another node makes, and assignments to a
// whole tensor (x[...] = value), which are puts into x that write all of it. A result of the graph stays a tensor of
// its own: the caller gets it, or it updates a tensor of the caller.
size_t remove_needless_copies(Graph& graph);

// Which nodes the values are made by, themselves or through others, not looking behind `given`.
std::vector<bool> needed_nodes(const Graph& graph, std::span<const ValueId> values,
                               std::span<const ValueId> given = {});

}  // namespace backplane::core::graph
