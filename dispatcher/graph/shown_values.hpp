// What a run gives its caller as tensors: a pass keeps those apart from each other, from arguments and from constants,
// since the caller may change them in place.
#pragma once

#include <vector>

#include "graph/graph.hpp"

namespace backplane::core::graph {

inline bool is_view(const Node& node) { return node.op->flags & (BP_OP_VIEW | BP_OP_MAYBE_VIEW); }

// Per value: is it a result, or does a result show its memory?
std::vector<bool> shown_values(const Graph& graph);
inline bool shows_any(const std::vector<bool>& shown, const Node& node) {
  bool any = false;
  for (uint32_t i = 0; i < node.n_results; ++i) any = any || shown[node.first_result + i];
  return any;
}

}  // namespace backplane::core::graph
