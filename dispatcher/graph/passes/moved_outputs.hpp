// Which outputs of a graph its inputs lead to by ops that have a derivative there, whatever its value is.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/graph.hpp"

namespace backplane::core::graph {

// Per output: do no wanted inputs lead to it? What the tape says of the function's own results.
std::vector<bool> constant_outputs(const Graph& graph, const std::vector<bool>& wanted);

// Per input: the outputs to which it leads, as GraphFunction::Forward has it. The tape gives no gradient for others,
// where the function's would have none.
std::vector<uint64_t> moved_outputs(const Graph& graph);

}  // namespace backplane::core::graph
