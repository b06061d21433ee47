#include "graph/graph.hpp"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "record/plain_value.hpp"

namespace backplane::core::graph {

struct Graph::Held {
  std::unordered_map<const OpEntry*, std::shared_ptr<const bp_op_def>> ops;
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

// The record of an op that a program defines anew would be freed under the graph.
void Graph::hold(const OpEntry& op) {
  if (held_->latest == &op) return;
  held_->latest = &op;
  auto& held = held_->ops[&op];
  if (!held) held = hold_op_def(op.handle);
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

// ---- Sizes

std::vector<int64_t> Graph::bind(std::span<const Shape> shapes) const {
  BP_CHECK(shapes.size() == inputs_.size(), TYPE, "graph ", name, ": takes ", inputs_.size(), " tensors, found ",
           shapes.size());
  std::vector<int64_t> numbers(symbols_.size(), 0);
  std::vector<bool> bound(symbols_.size(), false);
  for (size_t s = 0; s < symbols_.size(); ++s) {
    const Value& source = values_[symbols_[s].value];
    if (source.kind != Value::Kind::kInput) continue;
    const Shape shape = shapes[source.index];
    BP_CHECK(symbols_[s].axis < shape.size(), SHAPE, "graph ", name, ": input ", inputs_[source.index].name, " has ",
             shape.size(), " dimensions; its size \"", symbol_names_[s], "\" is that of axis ", symbols_[s].axis);
    numbers[s] = shape[symbols_[s].axis];
  }
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const std::span<const Dim> expected = dims(inputs_[i].value);
    BP_CHECK(shapes[i].size() == expected.size(), SHAPE, "graph ", name, ": input ", inputs_[i].name, " has ",
             shapes[i].size(), " dimensions, expected ", expected.size());
    for (size_t axis = 0; axis < expected.size(); ++axis) {
      const int64_t wanted = sizes.evaluate(expected[axis], numbers);
      BP_CHECK(shapes[i][axis] == wanted, SHAPE, "graph ", name, ": input ", inputs_[i].name, " has size ",
               shapes[i][axis], " at axis ", axis, ", expected ", text(expected[axis]),
               expected[axis].is_number() ? "" : " = " + std::to_string(wanted));
    }
  }
  return numbers;
}

namespace {

bool holds(Constraint::Relation relation, int64_t left, int64_t right) {
  switch (relation) {
    case Constraint::Relation::kEqual:
      return left == right;
    case Constraint::Relation::kNotEqual:
      return left != right;
    case Constraint::Relation::kLess:
      return left < right;
    case Constraint::Relation::kLessEqual:
      return left <= right;
    case Constraint::Relation::kDivisible:
      return right != 0 && left % right == 0;
  }
  return false;
}

constexpr const char* kRelationWords[] = {" == ", " != ", " < ", " <= ", " divisible by "};

}  // namespace

void Graph::check(std::span<const int64_t> numbers) const {
  const auto known = [&](Dim dim) {
    for (const DimTerm& term : sizes.terms(dim))
      for (SymbolId s : term.symbols)
        if (values_[symbols_[s].value].kind == Value::Kind::kResult && numbers[s] == 0) return false;
    return true;
  };
  for (const Constraint& c : constraints) {
    if (!known(c.left) || !known(c.right)) continue;
    const int64_t left = sizes.evaluate(c.left, numbers), right = sizes.evaluate(c.right, numbers);
    if (holds(c.relation, left, right)) continue;
    std::string where;
    if (c.location != kNone)
      where = " (" + locations_[c.location].file + ":" + std::to_string(locations_[c.location].line) + ")";
    detail::fail(BP_ERROR_SHAPE, "graph ", name, ": relies on ", text(c.left),
                 kRelationWords[static_cast<size_t>(c.relation)], text(c.right), ", found ", left, " and ", right, ": ",
                 c.reason, where);
  }
}

}  // namespace backplane::core::graph
