// Random numbers of a run: what each draw of a graph takes.
#pragma once

#include "graph/graph.hpp"

namespace backplane::core::graph {

// The counters of each draw: reserved from the generators in the order of the draws, derived, or fixed. `symbols`: the
// values of all, which inputs bring. Throws BP_ERROR_VALUE where there are not as many generators as the graph names.
std::vector<bp_generator_state> reserve_draws(const Graph& graph, std::span<bp_generator_state* const> generators,
                                              std::span<const int64_t> symbols);

}  // namespace backplane::core::graph
