#include "graph/passes/common_subexpressions.hpp"

#include <string>
#include <unordered_map>

#include "graph/shown_values.hpp"
#include "record/plain_value.hpp"
#include "registry/ordered_ops.hpp"

namespace backplane::core::graph {
namespace {

// Everything that a node's results depend on, as bytes.
class Key {
 public:
  Key(const Graph& graph, const Node& node) {
    add(node.op);
    for (const Argument& a : graph.arguments(node)) argument(graph, a);
  }
  std::string take() { return std::move(bytes_); }

 private:
  template <class T>
  void add(const T& item) {
    bytes_.append(reinterpret_cast<const char*>(&item), sizeof item);
  }
  void argument(const Graph& graph, const Argument& a) {
    add(a.plain.tag);
    add(a.plain.flags);
    add(a.plain.count);
    if (a.is_value()) {
      add(graph.resolve(a.value()));
    } else if (a.is_values()) {
      for (const ValueId v : Argument(a).values()) add(v == kNone ? kNone : graph.resolve(v));
    } else if (a.plain.tag == BP_TAG_VALUE_LIST) {
      for (uint32_t i = 0; i < a.plain.count; ++i) {
        add(a.plain.u.values[i].tag);
        add(a.plain.u.values[i].u.i);
      }
    } else if (a.plain.tag == BP_TAG_STRING || a.plain.tag == BP_TAG_BOOL_LIST) {
      bytes_.append(static_cast<const char*>(a.plain.u.p), a.plain.count);
    } else if (!a.is_draw() && extra_bytes(a.plain)) {
      bytes_.append(static_cast<const char*>(a.plain.u.p), extra_bytes(a.plain));
    } else {
      add(a.plain.u.i);
    }
  }

  std::string bytes_;
};

// One value for each tensor that is a constant several times.
void merge_constants(Graph& graph) {
  std::unordered_map<const bp_tensor*, ValueId> seen;
  for (const Constant& c : graph.constants()) {
    const auto [first, is_new] = seen.try_emplace(c.tensor.get(), c.value);
    if (!is_new) graph.replace_uses(c.value, first->second);
  }
}

}  // namespace

size_t merge_common_subexpressions(Graph& graph) {
  merge_constants(graph);
  std::unordered_map<std::string, NodeId> seen;
  std::vector<bool> shown = shown_values(graph);
  // Two views of one tensor share its memory anyway; of ops such as reshape, two results may be two copies.
  const auto shows = [&](const Node& node) { return shows_any(shown, node) && !(node.op->flags & BP_OP_VIEW); };
  size_t merged = 0;
  for (NodeId id = 0; id < graph.nodes().size(); ++id) {
    const Node& node = graph.node(id);
    // What a function within does is not known.
    if (graph.is_erased(id) || (node.flags & Node::kRecomputed) || (node.op->flags & (BP_OP_HIGHER_ORDER | kOrdered)))
      continue;
    const auto [first, is_new] = seen.try_emplace(Key(graph, node).take(), id);
    // Two results of the caller's stay two tensors.
    if (is_new || (shows(node) && shows(graph.node(first->second)))) continue;
    const ValueId kept = graph.node(first->second).first_result;
    for (uint32_t i = 0; i < node.n_results; ++i) {
      if (shown[node.first_result + i]) shown[kept + i] = true;
      graph.replace_uses(node.first_result + i, kept + i);
    }
    graph.erase(id);
    ++merged;
  }
  graph.compact();
  return merged;
}

}  // namespace backplane::core::graph
