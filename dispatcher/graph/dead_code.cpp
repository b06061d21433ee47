#include "graph/dead_code.hpp"

namespace backplane::core::graph {

size_t remove_dead_code(Graph& graph) {
  std::vector<bool> needed(graph.values().size(), false);
  for (const ValueId v : graph.outputs) needed[v] = true;
  // A size that a constraint or another size is made of.
  for (const Symbol& s : graph.symbols())
    if (s.value != kNone) needed[s.value] = true;
  size_t erased = 0;
  for (auto id = static_cast<NodeId>(graph.nodes().size()); id-- > 0;) {
    if (graph.is_erased(id)) continue;
    const Node& node = graph.node(id);
    bool used = false;
    for (uint32_t i = 0; i < node.n_results; ++i) used = used || needed[node.first_result + i];
    if (used) {
      Graph::each_value(graph.arguments(node), [&](ValueId v) { needed[v] = true; });
    } else {
      graph.erase(id);
      ++erased;
    }
  }
  if (erased) graph.compact();
  return erased;
}

}  // namespace backplane::core::graph
