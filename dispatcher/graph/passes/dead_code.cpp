#include "graph/passes/dead_code.hpp"

#include <algorithm>
#include <string_view>

#include "graph/ordered_nodes.hpp"
#include "graph/shown_values.hpp"

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

namespace {

class Copies {
 public:
  explicit Copies(Graph& graph) : graph_(graph), shown_(shown_values(graph)) {}

  size_t run() {
    size_t removed = 0;
    for (NodeId id = 0; id < graph_.nodes().size(); ++id) {
      if (graph_.is_erased(id)) continue;
      const ValueId made = graph_.node(id).first_result, source = source_of(graph_.node(id));
      if (source == kNone || !same_type(made, source)) continue;
      if (shown_[made]) shown_[source] = true;
      graph_.replace_uses(made, source);
      graph_.erase(id);
      ++removed;
    }
    if (removed) graph_.compact();
    return removed;
  }

 private:
  // The value that can replace the node's result; kNone: the node stays.
  ValueId source_of(const Node& node) const {
    const std::span<const Argument> arguments = graph_.arguments(node);
    const bool is_copy = has_tag(node, "role:copy"), is_put = has_tag(node, "role:assign") && writes_all(arguments[2]);
    if (!is_copy && !is_put) return kNone;
    const Argument& given = arguments[is_copy ? 0 : 1];
    if (!given.is_value()) return kNone;
    const ValueId source = graph_.resolve(given.value());
    if (shown_[node.first_result]) return is_made(source) && has_kernel(source) && !shown_[source] ? source : kNone;
    return is_put || is_made(source) ? source : kNone;
  }

  static bool has_tag(const Node& node, std::string_view tag) {
    const char* tags = node.op->record->def.tags;
    return tags && std::string_view(tags).find(tag) != std::string_view::npos;
  }

  static bool writes_all(const Argument& axes) {
    return axes.plain.tag == BP_TAG_INT_LIST && axes.plain.count == 0 && !axes.is_symbolic();
  }

  // By a node, as a tensor with memory of its own.
  bool is_made(ValueId value) const {
    const NodeId id = graph_.value(value).node;
    return id != kNone && !is_view(graph_.node(id)) && !(graph_.node(id).op->flags & BP_OP_HIGHER_ORDER);
  }

  // That writes into memory that the caller of the kernel gives. A decomposition may give an argument back, and a
  // kernel that makes its results may keep them.
  bool has_kernel(ValueId value) const {
    const core::Plan& plan = graph_.node(graph_.value(value).node).op->plan();
    const uint32_t backend = graph_.value(value).device.backend;
    if (backend >= plan.n_devices || plan.devices[backend].rows.empty()) return false;
    return std::ranges::none_of(plan.devices[backend].rows,
                                [](const KernelRow* row) { return row->def.flags & BP_KERNEL_OWN_RESULTS; });
  }

  bool same_type(ValueId a, ValueId b) const {
    const Value &x = graph_.value(a), &y = graph_.value(b);
    return x.dtype == y.dtype && x.device.backend == y.device.backend && x.device.ordinal == y.device.ordinal &&
           std::ranges::equal(graph_.dims(a), graph_.dims(b));
  }

  Graph& graph_;
  std::vector<bool> shown_;
};

}  // namespace

size_t remove_needless_copies(Graph& graph) { return Copies(graph).run(); }

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
