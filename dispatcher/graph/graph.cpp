#include "graph/graph.hpp"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "backplane/device.hpp"
#include "record/plain_value.hpp"

namespace backplane::core::graph {

struct Graph::Held {
  struct Op {
    std::shared_ptr<const bp_op_def> record;
    PluginRecord* owner = nullptr;  // which a lease keeps
  };
  Held() = default;
  Held(const Held&) = delete;
  ~Held() {
    for (const auto& [entry, op] : ops) unlease(op.owner, LeaseKind::kGraph);
  }
  std::unordered_map<const OpEntry*, Op> ops;
  const OpEntry* latest = nullptr;
  std::vector<std::unique_ptr<std::max_align_t[]>> blocks;
  char* next = nullptr;
  size_t left = 0;
  std::unordered_multimap<size_t, uint32_t> locations;  // by hash
};

Graph::Graph() : held_(std::make_unique<Held>()) {}
Graph::~Graph() = default;

void* Graph::allocate(size_t bytes) {
  constexpr size_t kAlign = alignof(std::max_align_t), kBlock = 4096;
  bytes = (bytes + kAlign - 1) / kAlign * kAlign;
  if (bytes > held_->left) {
    held_->left = std::max(bytes, kBlock);
    held_->blocks.push_back(std::make_unique<std::max_align_t[]>(held_->left / kAlign));
    held_->next = reinterpret_cast<char*>(held_->blocks.back().get());
  }
  void* memory = held_->next;
  held_->next += bytes;
  held_->left -= bytes;
  return memory;
}

Argument Graph::copy(const bp_value& plain) {
  Argument argument{plain};
  if (const size_t bytes = extra_bytes(plain)) {
    char* place = static_cast<char*>(allocate(bytes));
    argument.plain = copy_plain(plain, place);
  }
  return argument;
}

Argument Graph::list(std::span<const ValueId> values) {
  Argument argument;
  argument.plain.tag = BP_TAG_TENSOR_LIST;
  argument.plain.count = static_cast<uint32_t>(values.size());
  void* ids = allocate(values.size_bytes() + 1);
  if (!values.empty()) std::memcpy(ids, values.data(), values.size_bytes());
  argument.plain.u.p = ids;
  return argument;
}

Argument Graph::sizes_of(std::span<const Dim> dims) {
  Argument argument;
  argument.plain.tag = BP_TAG_INT_LIST;
  argument.plain.count = static_cast<uint32_t>(dims.size());
  for (Dim dim : dims)
    if (!dim.is_number()) argument.plain.flags = Argument::kSymbolic;
  auto* codes = static_cast<int64_t*>(allocate(dims.size_bytes() + 1));
  std::transform(dims.begin(), dims.end(), codes, [](Dim dim) { return dim.code(); });
  argument.plain.u.ints = codes;
  return argument;
}

ValueId Graph::add_value(Value::Kind kind, const Type& type, uint32_t index, NodeId node) {
  BP_CHECK(values_.size() < kNone, OVERFLOW, "a graph has at most 2^32 - 1 values");
  const auto first_dim = static_cast<uint32_t>(dims_.size());
  // The caller's dims may lie in `dims_` itself.
  for (size_t i = 0; i < type.dims.size(); ++i) dims_.push_back(Dim(type.dims[i]));
  values_.push_back({kind, static_cast<uint8_t>(type.dims.size()), type.dtype, index, node, first_dim, type.device});
  if (!replaced_.empty()) replaced_.push_back(kNone);
  return static_cast<ValueId>(values_.size() - 1);
}

ValueId Graph::add_input(std::string name, const Type& type) {
  const ValueId value = add_value(Value::Kind::kInput, type, static_cast<uint32_t>(inputs_.size()), kNone);
  inputs_.push_back({std::move(name), value});
  return value;
}

ValueId Graph::add_constant(Tensor tensor, std::string name, bool live) {
  const std::vector<Dim> dims(tensor.shape().begin(), tensor.shape().end());
  const ValueId value = add_value(Value::Kind::kConstant, {tensor.dtype(), tensor.device(), dims},
                                  static_cast<uint32_t>(constants_.size()), kNone);
  constants_.push_back({std::move(name), std::move(tensor), value, live});
  return value;
}

SymbolId Graph::add_symbol(std::string name, ValueId value, uint32_t axis, int64_t example) {
  symbols_.push_back({value, axis, example});
  symbol_names_.push_back(std::move(name));
  return static_cast<SymbolId>(symbols_.size() - 1);
}

uint32_t Graph::add_location(Location location) {
  const size_t hash = std::hash<std::string>()(location.file) ^ std::hash<std::string>()(location.function) * 31 ^
                      std::hash<int32_t>()(location.line) * 0x9e3779b97f4a7c15u;
  const auto [first, last] = held_->locations.equal_range(hash);
  for (auto it = first; it != last; ++it)
    if (locations_[it->second] == location) return it->second;
  const auto index = static_cast<uint32_t>(locations_.size());
  held_->locations.emplace(hash, index);
  locations_.push_back(std::move(location));
  return index;
}

// The record of an op that is redefined would be freed under the graph, and so would the record of a plugin's op.
void Graph::hold(const OpEntry& op) {
  if (held_->latest == &op) return;
  held_->latest = &op;
  if (held_->ops.count(&op) != 0) return;
  held_->ops.emplace(&op, Held::Op{hold_op_def(op.handle), op.owner});
  lease(op.owner, LeaseKind::kGraph);
}

NodeId Graph::add_node(const OpEntry& op, std::span<const Argument> arguments, std::span<const Type> results,
                       uint32_t location, uint16_t flags) {
  BP_CHECK(arguments.size() == static_cast<size_t>(op.n_args), TYPE, op.record->name, ": a node of it has ", op.n_args,
           " arguments, found ", arguments.size());
  hold(op);
  const auto id = static_cast<NodeId>(nodes_.size());
  Node node{&op,      static_cast<uint32_t>(arguments_.size()), static_cast<ValueId>(values_.size()),
            location, static_cast<uint32_t>(results.size()),    static_cast<uint16_t>(arguments.size()),
            flags};
  for (size_t i = 0; i < arguments.size(); ++i) arguments_.push_back(owned(arguments[i]));
  nodes_.push_back(node);
  for (size_t i = 0; i < results.size(); ++i) add_value(Value::Kind::kResult, results[i], static_cast<uint32_t>(i), id);
  return id;
}

// ---- Editing

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

bp_device Graph::device_of(const Node& node) const {
  return node.n_results ? values_[node.first_result].device : default_device();
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

// The live nodes in the order in which they run: nodes inserted before a node come before it, in the order of
// insertion, and so on for nodes inserted before those.
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
  for (const Update& u : updates) use(u.target);

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
  for (Update& u : updates) u.target = renumber(u.target);
  for (Symbol& s : symbols_) s.value = s.value == kNone ? kNone : renumbered.values[s.value];
}

void Graph::copy_facts(const Graph& other) {
  name = other.name;
  draws = other.draws;
  generators = other.generators;
  own_rules = other.own_rules;
  own_batch = other.own_batch;
  rules = other.rules;
  not_of_ops = other.not_of_ops;
  graphs = other.graphs;
}

std::unique_ptr<Graph> Graph::clone() const {
  auto copy = std::make_unique<Graph>();
  copy->copy_facts(*this);
  copy->outputs = outputs;
  copy->updates = updates;
  copy->constraints = constraints;
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
