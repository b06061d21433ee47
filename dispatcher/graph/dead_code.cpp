#include "graph/dead_code.hpp"

#include "graph/ordered_nodes.hpp"

namespace backplane::core::graph {

size_t remove_dead_code(Graph& graph) {
  std::vector<ValueId> given_out = graph.outputs;
  // A size that a constraint or another size is made of.
  for (const Symbol& s : graph.symbols())
    if (s.value != kNone) given_out.push_back(s.value);
  for (const NodeId id : ordered_nodes(graph))
    if (graph.node(id).n_results > 0) given_out.push_back(graph.node(id).first_result);
  const std::vector<bool> needed = needed_nodes(graph, given_out);
  size_t erased = 0;
  for (NodeId id = 0; id < graph.nodes().size(); ++id) {
    if (graph.is_erased(id) || needed[id]) continue;
    graph.erase(id);
    ++erased;
  }
  if (erased) graph.compact();
  return erased;
}

std::vector<bool> needed_nodes(const Graph& graph, std::span<const ValueId> values, std::span<const ValueId> given) {
  std::vector<bool> wanted(graph.values().size(), false), stops(graph.values().size(), false),
      needed(graph.nodes().size(), false);
  for (const ValueId v : given) stops[v] = true;
  const auto want = [&](ValueId v) { wanted[v] = !stops[v]; };
  for (const ValueId v : values) want(v);
  for (auto id = static_cast<NodeId>(graph.nodes().size()); id-- > 0;) {
    if (graph.is_erased(id)) continue;
    const Node& node = graph.node(id);
    for (uint32_t i = 0; i < node.n_results; ++i) needed[id] = needed[id] || wanted[node.first_result + i];
    if (needed[id]) Graph::each_value(graph.arguments(node), want);
  }
  return needed;
}

}  // namespace backplane::core::graph
