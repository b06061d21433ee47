// What a run gives its caller as tensors: a pass keeps those apart from each other, from arguments and from constants,
// since the caller may change them in place.
#pragma once

#include <vector>

#include "graph/graph.hpp"

namespace backplane::core::graph {

inline bool is_view(const Node& node) { return node.op->flags & (BP_OP_VIEW | BP_OP_MAYBE_VIEW); }

// Per value: is it a result, or does a result show its memory?
inline std::vector<bool> shown_values(const Graph& graph) {
  std::vector<bool> shown(graph.values().size(), false);
  for (const ValueId v : graph.outputs) shown[v] = true;
  for (auto id = static_cast<NodeId>(graph.nodes().size()); id-- > 0;) {
    const Node& node = graph.node(id);
    if (!graph.is_erased(id) && is_view(node) && shown[node.first_result])
      Graph::each_value(graph.arguments(node), [&](ValueId v) { shown[v] = true; });
  }
  return shown;
}
inline bool shows_any(const std::vector<bool>& shown, const Node& node) {
  bool any = false;
  for (uint32_t i = 0; i < node.n_results; ++i) any = any || shown[node.first_result + i];
  return any;
}

}  // namespace backplane::core::graph
