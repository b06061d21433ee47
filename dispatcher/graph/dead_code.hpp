// Erases the nodes of which nothing that the graph gives depends, but for calls of ordered ops.
#pragma once

#include <span>
#include <vector>

#include "graph/graph.hpp"

namespace backplane::core::graph {

// How many nodes went. Linear. Random ops go too: their draws stay, so that the others' counters do.
size_t remove_dead_code(Graph& graph);

// Which nodes the values are made by, themselves or through others, not looking behind `given`.
std::vector<bool> needed_nodes(const Graph& graph, std::span<const ValueId> values,
                               std::span<const ValueId> given = {});

}  // namespace backplane::core::graph
