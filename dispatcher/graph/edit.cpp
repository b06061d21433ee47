// Editing a graph: what is noted, and how `compact` carries it out.
#include <algorithm>

#include "graph/graph.hpp"

namespace backplane::core::graph {

NodeId Graph::insert_node(NodeId before, const OpEntry& op, std::span<const Argument> arguments,
                          std::span<const Type> results, uint32_t location, uint16_t flags) {
  const NodeId node = add_node(op, arguments, results, location, flags);
  inserted_.emplace_back(before, node);
  return node;
}

void Graph::erase(NodeId node) { nodes_[node].flags |= Node::kErased; }

void Graph::set_arguments(NodeId node, std::span<const Argument> arguments) {
  const std::vector<Argument> copies(arguments.begin(), arguments.end());
  nodes_[node].first_argument = static_cast<uint32_t>(arguments_.size());
  nodes_[node].n_arguments = static_cast<uint16_t>(copies.size());
  for (const Argument& a : copies) arguments_.push_back(owned(a));
}

void Graph::replace_uses(ValueId old, ValueId replacement) {
  if (replaced_.empty()) replaced_.assign(values_.size(), kNone);
  const ValueId target = resolve(replacement);
  BP_CHECK(target != old, INTERNAL, "graph ", name, ": value ", old, " would be replaced by itself");
  replaced_[old] = target;
}

ValueId Graph::resolve(ValueId value) const {
  if (replaced_.empty()) return value;
  while (replaced_[value] != kNone) value = replaced_[value];
  return value;
}

void Graph::redirect(std::span<const Argument> arguments) {
  for (const Argument& a : arguments) {
    auto& argument = const_cast<Argument&>(a);
    if (argument.is_value()) argument.plain.u.i = resolve(argument.value());
    if (argument.is_values())
      for (ValueId& v : argument.values())
        if (v != kNone) v = resolve(v);
  }
}

// The living nodes as they are to run: what was inserted before a node stands there, in the order of insertion, and so
// with what was inserted before that.
std::vector<NodeId> Graph::order() const {
  std::vector<std::pair<NodeId, NodeId>> inserted = inserted_;
  std::stable_sort(inserted.begin(), inserted.end(), [](auto& a, auto& b) { return a.first < b.first; });
  std::vector<bool> moved(nodes_.size(), false);
  for (const auto& [before, node] : inserted) moved[node] = true;
  const auto first_before = [&](NodeId node) {
    return std::lower_bound(inserted.begin(), inserted.end(), node, [](auto& a, NodeId b) { return a.first < b; });
  };
  std::vector<NodeId> order;
  order.reserve(nodes_.size());
  std::vector<std::pair<NodeId, size_t>> stack;  // a node, and which of those before it comes next
  for (NodeId root = 0; root < nodes_.size(); ++root) {
    if (moved[root]) continue;
    stack.emplace_back(root, static_cast<size_t>(first_before(root) - inserted.begin()));
    while (!stack.empty()) {
      auto& [node, next] = stack.back();
      if (next < inserted.size() && inserted[next].first == node) {
        const NodeId child = inserted[next++].second;
        stack.emplace_back(child, static_cast<size_t>(first_before(child) - inserted.begin()));
        continue;
      }
      if (!is_erased(node)) order.push_back(node);
      stack.pop_back();
    }
  }
  return order;
}

namespace {

// Old ids to new ones, and the arrays that are made anew.
struct Renumbering {
  std::vector<ValueId> values;
  std::vector<NodeId> nodes;
};

}  // namespace

void Graph::compact() {
  const std::vector<NodeId> running = order();
  for (NodeId id : running) redirect(arguments(nodes_[id]));
  for (ValueId& v : outputs) v = resolve(v);
  for (Symbol& s : symbols_)
    if (s.value != kNone) s.value = resolve(s.value);

  std::vector<bool> used(values_.size(), false);
  const auto use = [&](ValueId v) { used[v] = true; };
  for (NodeId id : running) each_value(arguments(nodes_[id]), use);
  std::for_each(outputs.begin(), outputs.end(), use);

  Renumbering renumbered{std::vector<ValueId>(values_.size(), kNone), std::vector<NodeId>(nodes_.size(), kNone)};
  std::vector<Value> old_values = std::exchange(values_, {});
  const std::vector<Dim> old_dims = std::exchange(dims_, {});
  const std::vector<Node> old_nodes = std::exchange(nodes_, {});
  const std::vector<Argument> old_arguments = std::exchange(arguments_, {});
  replaced_.clear();
  inserted_.clear();
  const auto move_value = [&](ValueId old, uint32_t index, NodeId node) {
    const Value& v = old_values[old];
    renumbered.values[old] =
        add_value(v.kind, {v.dtype, v.device, std::span(old_dims).subspan(v.first_dim, v.ndim)}, index, node);
    return renumbered.values[old];
  };

  for (size_t i = 0; i < inputs_.size(); ++i)
    inputs_[i].value = move_value(inputs_[i].value, static_cast<uint32_t>(i), kNone);
  std::vector<Constant> constants;
  for (Constant& c : constants_) {
    if (!used[c.value]) continue;
    c.value = move_value(c.value, static_cast<uint32_t>(constants.size()), kNone);
    constants.push_back(std::move(c));
  }
  constants_ = std::move(constants);

  const auto renumber = [&](ValueId v) {
    BP_CHECK(renumbered.values[v] != kNone, INTERNAL, "graph ", name, ": value ", v,
             " is used, but no node before that use makes it");
    return renumbered.values[v];
  };
  for (NodeId old : running) {
    Node node = old_nodes[old];
    const auto id = static_cast<NodeId>(nodes_.size());
    renumbered.nodes[old] = id;
    const auto first = std::span(old_arguments).subspan(node.first_argument, node.n_arguments);
    node.first_argument = static_cast<uint32_t>(arguments_.size());
    for (Argument a : first) {
      if (a.is_value()) a.plain.u.i = renumber(a.value());
      if (a.is_values())
        for (ValueId& v : a.values())
          if (v != kNone) v = renumber(v);
      arguments_.push_back(a);
    }
    const ValueId results = node.first_result;
    node.first_result = static_cast<ValueId>(values_.size());
    nodes_.push_back(node);
    for (uint32_t i = 0; i < node.n_results; ++i) move_value(results + i, i, id);
  }
  for (ValueId& v : outputs) v = renumber(v);
  for (Symbol& s : symbols_) s.value = s.value == kNone ? kNone : renumbered.values[s.value];
}

std::unique_ptr<Graph> Graph::clone() const {
  auto copy = std::make_unique<Graph>();
  copy->name = name;
  copy->outputs = outputs;
  copy->constraints = constraints;
  copy->draws = draws;
  copy->generators = generators;
  copy->own_rules = own_rules;
  copy->graphs = graphs;
  copy->sizes = sizes;
  copy->values_ = values_;
  copy->dims_ = dims_;
  copy->inputs_ = inputs_;
  copy->constants_ = constants_;
  copy->symbols_ = symbols_;
  copy->symbol_names_ = symbol_names_;
  copy->replaced_ = replaced_;
  copy->inserted_ = inserted_;
  for (const Location& location : locations_) copy->add_location(location);
  copy->nodes_ = nodes_;
  for (const Node& node : nodes_) copy->hold(*node.op);
  copy->arguments_.reserve(arguments_.size());
  for (const Argument& a : arguments_) {
    const bool refers = a.is_value() || a.is_draw() || a.is_graph();
    copy->arguments_.push_back(refers ? a : a.is_values() ? copy->list(a.values()) : copy->copy(a.plain));
  }
  return copy;
}

}  // namespace backplane::core::graph
