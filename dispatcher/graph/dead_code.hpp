// Erases the nodes of which nothing that the graph gives depends.
#pragma once

#include "graph/graph.hpp"

namespace backplane::core::graph {

// How many nodes went. Linear. Random ops go too: their draws stay, so that the others' counters do.
size_t remove_dead_code(Graph& graph);

}  // namespace backplane::core::graph
