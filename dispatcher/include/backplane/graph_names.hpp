// The names of a graph's constants, which are the names of its weights in the file that save_graph writes.
#pragma once

#include <span>
#include <string>

#include "backplane/graph.hpp"

namespace backplane {

// The graph with these names for its constants, in the order of Graph::constants(). An empty name leaves the constant's
// name as it is.
BACKPLANE_API Graph name_constants(const Graph& graph, std::span<const std::string> names);

}  // namespace backplane
