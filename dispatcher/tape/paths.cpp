#include "tape/paths.hpp"

#include <algorithm>
#include <vector>

namespace backplane::core {

PathsTo::PathsTo(std::span<const Edge> inputs, std::span<const Edge> roots) {
  uint32_t lowest = UINT32_MAX;
  for (const Edge& input : inputs) {
    leads_[input.node] = true;
    lowest = std::min(lowest, input.node->depth);
  }
  struct Visit {
    Node* node;
    uint32_t next_edge;
    bool leads;
  };
  std::vector<Visit> open;
  // Is it known whether the node leads there? Else it is visited next.
  const auto is_known = [&](Node* node) {
    if (!node || node->depth < lowest) return true;
    const auto [place, is_new] = leads_.try_emplace(node, false);
    if (is_new) open.push_back({node, 0, node->kind == Node::Kind::kGraph && node->graph->leads_everywhere()});
    return !is_new;
  };
  const auto walk_from = [&](Node* from) {
    is_known(from);
    while (!open.empty()) {
      Visit& visit = open.back();
      if (visit.next_edge < visit.node->n_edges) {
        Node* next = visit.node->edges()[visit.next_edge].node;
        if (!is_known(next)) continue;  // it comes back to this edge
        visit.leads = visit.leads || leads(next);
        ++visit.next_edge;
      } else {
        leads_[visit.node] = visit.leads;
        open.pop_back();
      }
    }
  };
  // An input that another is computed of is walked through as well: hooks and histories between them count.
  for (const Edge& input : inputs)
    for (uint32_t e = 0; e < input.node->n_edges; ++e)
      if (Node* next = input.node->edges()[e].node) walk_from(next);
  for (const Edge& root : roots) walk_from(root.node);
}

}  // namespace backplane::core
