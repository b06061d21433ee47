// Is a trace of a function the graph that an earlier one gave, at other sizes?
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/graph.hpp"

namespace backplane::core::graph {

struct TraceDifference {
  std::string what;
  Location where;  // line 0: unknown
};
struct Unlike {
  TraceDifference difference;
};

// The first thing in which a compact trace is not what the graph is where its symbols have these values.
std::optional<TraceDifference> difference(const Graph& graph, std::span<const int64_t> symbols, const Graph& trace);
// Throws it as Unlike. Without symbols, integers and floating numbers may differ.
void compare(const Graph& graph, std::optional<std::span<const int64_t>> symbols, const Graph& trace);

// The values of a graph's symbols where the first ones, which a user named, have these, and all others are quotients.
std::vector<int64_t> all_symbols(const Graph& graph, std::span<const int64_t> named);

}  // namespace backplane::core::graph
