// Running a graph op by op, as ordinary calls at the transforms that are active: the plain meaning of a graph, which
// plans are tested against, and what a graph inside of transforms does.
#pragma once

#include "graph/graph.hpp"

namespace backplane::core::graph {

// The counters of each draw: reserved from the generators in the order of the draws, derived, or fixed.
// Throws BP_ERROR_VALUE where there are not as many generators as the graph names.
std::vector<bp_generator_state> reserve_draws(const Graph& graph, std::span<bp_generator_state* const> generators,
                                              std::span<const int64_t> symbols);

// Checks the inputs' number, shapes, dtypes and devices, and the constraints; gives the values of the symbols.
std::vector<int64_t> check_inputs(const Graph& graph, std::span<const Tensor> inputs);

std::vector<Tensor> replay(const Graph& graph, std::span<const Tensor> inputs,
                           std::span<bp_generator_state* const> generators);

}  // namespace backplane::core::graph
