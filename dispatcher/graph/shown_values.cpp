#include "graph/shown_values.hpp"

namespace backplane::core::graph {

std::vector<bool> shown_values(const Graph& graph) {
  std::vector<bool> shown(graph.values().size(), false);
  for (const ValueId v : graph.outputs) shown[v] = true;
  for (auto id = static_cast<NodeId>(graph.nodes().size()); id-- > 0;) {
    const Node& node = graph.node(id);
    if (!graph.is_erased(id) && is_view(node) && shown[node.first_result])
      Graph::each_value(graph.arguments(node), [&](ValueId v) { shown[v] = true; });
  }
  return shown;
}

}  // namespace backplane::core::graph
