// A graph in terms of other ops: for those who translate graphs and know a limited set of ops.
#pragma once

#include <functional>
#include <string_view>

#include "backplane/graph.hpp"

namespace backplane {

// The graph with each node that `keeps` does not name by its op (NAMESPACE::NAME) replaced by the calls of its op's
// decomposition, repeatedly. Nodes without a decomposition stay, and so do nodes that draw random numbers, take
// a function, or have sizes that are not known.
BACKPLANE_API Graph decompose_graph(const Graph& graph, const std::function<bool(std::string_view op_name)>& keeps);

}  // namespace backplane
