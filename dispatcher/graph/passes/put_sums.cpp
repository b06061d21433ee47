#include "graph/passes/put_sums.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "graph/passes/rewrite_words.hpp"
#include "memory/devices/device.hpp"
#include "memory/tensors/tensor_impl.hpp"
#include "record/shape_rules.hpp"
#include "registry/registry.hpp"

namespace backplane::core::graph {
namespace {

// A view whose `put` formula is one call, put(x, v, …): the view's arguments are those of that call, less the second.
struct PartOf {
  const OpEntry* view;
  std::vector<uint32_t> argument;  // of the view, per argument of the put from the third on
};
using Parts = std::unordered_map<const OpEntry*, PartOf>;

std::optional<PartOf> part_of(const OpEntry& view, const OpEntry** put) {
  const OpRecord& record = *view.record;
  const bp_formula* formula = record.find_formula(BP_RULE_PUT);
  if (!(view.flags & BP_OP_VIEW) || !formula || formula->n_roots != 1) return {};
  const FormulaPlan& plan = record.plan(*formula);
  const PlanNode* last = final_call(plan);
  if (!last || last->n_inputs != record.args.size() + 1) return {};
  const auto is_argument = [&](uint32_t k, int64_t i) {
    const PlanNode& node = input_node(plan, *last, k);
    return node.kind == BP_NODE_ARG && (i < 0 || node.imm == i);
  };
  if (!is_argument(0, record.def.alias) || input_node(plan, *last, 1).kind != BP_NODE_COTANGENT) return {};
  PartOf found{&view, {}};
  for (uint32_t k = 2; k < last->n_inputs; ++k) {
    if (!is_argument(k, -1)) return {};
    found.argument.push_back(static_cast<uint32_t>(input_node(plan, *last, k).imm));
  }
  link_entry(const_cast<OpEntry&>(view));
  *put = op_entry(record.calls[static_cast<size_t>(last->imm)]);
  return found;
}

Parts all_parts() {
  Parts parts;
  for (uint32_t i = 0; i < op_count(); ++i) {
    const OpEntry& op = *op_entry(i);
    const OpEntry* put = nullptr;
    if (op.withdrawn.load(std::memory_order_acquire)) continue;
    if (std::optional<PartOf> part = part_of(op, &put)) parts.try_emplace(put, std::move(*part));
  }
  return parts;
}

class PutSums {
 public:
  PutSums(Graph& graph, bool composed) : graph_(graph), parts_(all_parts()), uses_(graph.values().size(), 0) {
    const Parts all = parts_;
    if (composed) std::erase_if(parts_, [&](const auto& part) { return !is_lost(*part.first, all); });
    for (const Node& node : graph.nodes()) Graph::each_value(graph.arguments(node), [&](ValueId v) { ++uses_[v]; });
    for (const ValueId v : graph.outputs) ++uses_[v];
  }
  size_t run();

 private:
  static bool is_lost(const OpEntry& put, const Parts& all);
  bool is_zeros(const Argument& a) const;
  const Node* put_into_zeros(const Argument& term) const;
  bool join(NodeId id, const Argument& sum, const Argument& term);
  std::optional<std::vector<Argument>> with_part(NodeId before, const Node& put, ValueId sum);
  ValueId insert(NodeId before, const OpEntry& op, std::span<const Argument> arguments, ValueId like);
  bool is_whole_part(const PartOf& part, std::span<const Argument> arguments, ValueId value) const;

  Graph& graph_;
  Parts parts_;
  std::vector<uint32_t> uses_;  // by value, as they were at first
};

// Does the put decompose into an op that is not one?
bool PutSums::is_lost(const OpEntry& put, const Parts& all) {
  if (!put.decompose || put.decompose->n_roots != 1) return false;
  link_entry(const_cast<OpEntry&>(put));
  const PlanNode* last = final_call(put.record->plan(*put.decompose));
  return !last || !all.contains(op_entry(put.record->calls[static_cast<size_t>(last->imm)]));
}

bool PutSums::is_zeros(const Argument& a) const {
  const NodeId maker = a.is_value() ? graph_.value(graph_.resolve(a.value())).node : kNone;
  if (maker == kNone || graph_.node(maker).op != &role_op(Role::kFull)) return false;
  return is_the_number(graph_.arguments(graph_.node(maker))[1], 0.0);
}

// The node that makes the term, if it puts a part into zeros and nothing else reads it.
const Node* PutSums::put_into_zeros(const Argument& term) const {
  if (!term.is_value() || uses_[term.value()] != 1) return nullptr;
  const ValueId value = graph_.resolve(term.value());
  const NodeId maker = graph_.value(value).node;
  if (maker == kNone) return nullptr;
  const Node& node = graph_.node(maker);
  const std::span<const Argument> arguments = graph_.arguments(node);
  if (node.n_results != 1 || arguments.size() < 2 || !is_zeros(arguments[0])) return nullptr;
  const bp_value& last = arguments.back().plain;
  const bool adds = (node.op->flags & kAddsToFirst) && last.tag == BP_TAG_BOOL && last.u.i != 0;
  return adds || parts_.contains(node.op) ? &node : nullptr;
}

// Has the value the shape that the view of a tensor like the put's has?
bool PutSums::is_whole_part(const PartOf& part, std::span<const Argument> arguments, ValueId value) const {
  const auto dims = graph_.dims(value);
  std::vector<bp_value> plain;
  std::vector<int64_t> sizes;
  Tensor handle;
  for (const Argument& a : arguments) {
    if (a.is_symbolic() || a.is_values()) return false;
    plain.push_back(a.plain);
    if (!a.is_value()) continue;
    const Value& v = graph_.value(a.value());
    for (const Dim dim : graph_.dims(a.value())) {
      if (!dim.is_number()) return false;
      sizes.push_back(dim.number());
    }
    handle = Tensor::adopt(new_handle(device_at(v.device), v.dtype, v.ndim, sizes.data()));
    plain.back() = backplane::value(handle);
  }
  ShapeResult shape;
  infer_shape(*part.view->record, plain.data(), static_cast<int32_t>(plain.size()), 0, shape);
  return shape.view_dtype == BP_DTYPE_NONE && dims.size() == static_cast<size_t>(shape.ndim) &&
         std::equal(dims.begin(), dims.end(), shape.sizes, [](Dim a, int64_t b) { return a == Dim(b); });
}

ValueId PutSums::insert(NodeId before, const OpEntry& op, std::span<const Argument> arguments, ValueId like) {
  const Node& node = graph_.node(before);
  const uint32_t location = node.location;
  const uint16_t flags = node.flags;
  const Type type = graph_.type(like);
  const std::vector<Dim> dims(type.dims.begin(), type.dims.end());
  const Type result{type.dtype, type.device, dims};
  const NodeId made = graph_.insert_node(before, op, arguments, {&result, 1}, location, flags);
  uses_.resize(graph_.values().size(), 1);
  return graph_.node(made).first_result;
}

// The put's arguments with the sum in place of zeros, and as its value what that has to be.
std::optional<std::vector<Argument>> PutSums::with_part(NodeId before, const Node& put, ValueId sum) {
  const std::span<const Argument> given = graph_.arguments(put);
  std::vector<Argument> arguments(given.begin(), given.end());
  arguments[0] = Argument::of(sum);
  const auto found = parts_.find(put.op);
  if (found == parts_.end()) return arguments;
  const PartOf& part = found->second;
  if (!arguments[1].is_value()) return {};
  const ValueId value = graph_.resolve(arguments[1].value());
  if (graph_.value(value).dtype != graph_.value(sum).dtype) return {};
  std::vector<Argument> of_view(part.view->record->args.size());
  of_view[part.view->record->def.alias] = arguments[0];
  for (size_t k = 0; k < part.argument.size(); ++k) of_view[part.argument[k]] = arguments[k + 2];
  if (!is_whole_part(part, of_view, value)) return {};
  const ValueId seen = insert(before, *part.view, of_view, value);
  const Argument terms[] = {Argument::of(seen), Argument::of(value)};
  arguments[1] = Argument::of(insert(before, role_op(Role::kAdd), terms, value));
  return arguments;
}

bool PutSums::join(NodeId id, const Argument& sum, const Argument& term) {
  if (!sum.is_value()) return false;
  const Node* put = put_into_zeros(term);
  if (!put) return false;
  const ValueId result = graph_.node(id).first_result, start = graph_.resolve(sum.value());
  if (graph_.value(start).dtype != graph_.value(result).dtype ||
      !std::ranges::equal(graph_.dims(start), graph_.dims(result)) ||
      graph_.value(put->first_result).dtype != graph_.value(result).dtype)
    return false;
  const Node kept = *put;  // inserting moves nodes
  const std::optional<std::vector<Argument>> arguments = with_part(id, kept, start);
  if (!arguments) return false;
  graph_.replace_uses(result, insert(id, *kept.op, *arguments, result));
  graph_.erase(id);
  return true;
}

size_t PutSums::run() {
  const OpEntry& add = role_op(Role::kAdd);
  const auto n = static_cast<NodeId>(graph_.nodes().size());
  size_t joined = 0;
  for (NodeId id = 0; id < n; ++id) {
    if (graph_.is_erased(id) || graph_.node(id).op != &add) continue;
    const std::span<const Argument> terms = graph_.arguments(graph_.node(id));
    const Argument left = terms[0], right = terms[1];
    if (join(id, left, right) || join(id, right, left)) ++joined;
  }
  if (joined) graph_.compact();
  return joined;
}

}  // namespace

size_t add_composed_parts_in_place(Graph& graph) { return PutSums(graph, true).run(); }
size_t add_parts_in_place(Graph& graph) { return PutSums(graph, false).run(); }

}  // namespace backplane::core::graph
