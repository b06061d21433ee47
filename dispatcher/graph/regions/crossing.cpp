#include "graph/regions/crossing.hpp"

#include <unordered_set>

#include "call/formulas/run_formula.hpp"
#include "call/kernel_form.hpp"
#include "call/operand_checks.hpp"
#include "call/result_shapes.hpp"
#include "call/row.hpp"
#include "graph/sizes.hpp"
#include "memory/copy.hpp"
#include "memory/devices/device.hpp"
#include "memory/tensors/tensor_impl.hpp"
#include "record/dtype_rules.hpp"
#include "record/number_range.hpp"

namespace backplane::core::graph {

std::span<const int64_t> CrossingGraph::sizes(std::span<const Dim> dims) {
  auto& numbers = ints_.emplace_back();
  for (const Dim dim : dims) numbers.push_back(graph_.sizes.evaluate(dim, symbols_));
  return numbers;
}

void CrossingGraph::show_constant(bp_graph_value& value, const Tensor& tensor) {
  value.constant = tensor.get();
  bp_storage* storage = tensor.get()->storage;
  if (!storage) return;
  wait_until_written(*storage);
  constants_.push_back(storage);
}

uint32_t CrossingGraph::number(ValueId id) {
  const auto [known, is_new] = numbers_.try_emplace(id, static_cast<uint32_t>(values_.size()));
  if (!is_new) return known->second;
  const Value& v = graph_.value(id);
  const std::span<const int64_t> shape = sizes(graph_.dims(id));
  handles_.push_back(Tensor::adopt(new_handle(device_at(v.device), v.dtype, v.ndim, shape.data())));
  bp_graph_value value{v.dtype, 0, v.ndim, shape.data(), v.device, nullptr};
  const bool fixed = v.kind == Value::Kind::kConstant && !graph_.constants()[v.index].live;
  if (fixed) show_constant(value, graph_.constants()[v.index].tensor);
  values_.push_back(value);
  return static_cast<uint32_t>(values_.size() - 1);
}

// As a call takes it, over handles.
bp_value CrossingGraph::argument(const Argument& a) {
  bp_value v = a.plain;
  if (a.is_value()) {
    v.u.t = handles_[number(a.value())].get();
  } else if (a.is_values()) {
    std::vector<bp_tensor*> list;
    for (const ValueId one : Argument(a).values()) list.push_back(one == kNone ? nullptr : handles_[number(one)].get());
    v.u.tensors = lists_.emplace_back(std::move(list)).data();
  } else if (a.is_symbolic()) {
    v = evaluated(graph_, a, symbols_, ints_);
  } else if (a.is_draw() || a.is_graph()) {
    v.count = 0;
    v.u.p = nullptr;
  }
  return v;
}

// Numbers of values in place of tensors.
void CrossingGraph::by_reference(const Argument& a, bp_value& v) {
  if (a.is_value()) {
    v.tag = BP_TAG_REF;
    v.u.i = number(a.value());
  } else if (a.is_values()) {
    auto& list = ints_.emplace_back();
    for (const ValueId one : Argument(a).values()) list.push_back(one == kNone ? -1 : int64_t{number(one)});
    v.tag = BP_TAG_REF_LIST;
    v.u.ints = list.data();
  }
}

// The kernel that would run the call, with the numbers that it would receive: false if it is another plugin's,
// or if a number does not fit the dtype, for which the call itself reports the error.
bool CrossingGraph::resolve(const Node& node, std::vector<bp_value>& args, bp_dtype& compute) {
  const OpRecord& record = *node.op->record;
  const auto n = static_cast<int32_t>(args.size());
  bp_value outs[kMaxResults] = {}, replaced[kMaxArgs];
  const Call call{*node.op, args.data(), n, outs, node.op->n_results, ~kCreationKey};
  compute = compute_dtype(record, args.data(), n);
  if (record.def.dtype_flags & BP_DTYPE_COMPARES && with_infinities(record, args.data(), n, compute, replaced))
    return false;
  if (!(node.op->flags & (BP_OP_VIEW | BP_OP_MAYBE_VIEW))) {
    const NumbersOn here(graph_.device_of(node));
    const Device& device = device_of_call(call);
    ResultShapes shapes(call);
    const KernelRow* row = pick_row(call, device, compute, shapes, nullptr);
    if (row == nullptr || row->owner != device.backend->owner) return false;
  }
  for (int32_t i = 0; i < n; ++i) {
    bp_value& v = args[static_cast<size_t>(i)];
    if (v.tag < BP_TAG_BOOL || v.tag > BP_TAG_COMPLEX) continue;
    const bool promotes = i < 64 && (record.def.promote >> i & 1);
    const uint16_t type = record.args[static_cast<size_t>(i)].type;
    if (type == BP_TYPE_TENSOR && promotes) check_number(compute, v, record, i);
    if (type == BP_TYPE_SCALAR) v = prepare_scalar(record, i, v, promotes ? compute : bp_dtype{BP_DTYPE_NONE});
  }
  resolve_args(record, args.data(), resolved_.emplace_back());
  return true;
}

uint64_t faults_in(uint64_t faults, bp_dtype compute) {
  if (faults == BP_FAULTS_UNSTATED || compute == BP_DTYPE_NONE || (BP_MASK_INTEGER & BP_DTYPE_BIT(compute)))
    return faults;
  const uint64_t left = faults & ~uint64_t{BP_FAULT_DIVISION | BP_FAULT_EXPONENT};
  return left == 0 ? uint64_t{BP_FAULT_NONE} : left;
}

void CrossingGraph::add_node(NodeId id) {
  const Node& node = graph_.node(id);
  const OpRecord& record = *node.op->record;
  const std::span<const Argument> arguments = graph_.arguments(node);
  auto& args = args_.emplace_back();
  for (const Argument& a : arguments) args.push_back(argument(a));
  auto& results = results_.emplace_back();
  for (uint32_t i = 0; i < node.n_results; ++i) results.push_back(number(node.first_result + i));
  bp_graph_node crossing{};
  crossing.op = record.def.name;
  crossing.op_index = node.op->handle;
  crossing.revision = record.def.revision;
  bp_dtype compute = BP_DTYPE_NONE;
  try {
    constexpr uint64_t kDispatchersOwn = BP_OP_COMPOSITE | BP_OP_HIGHER_ORDER | BP_OP_DYNAMIC;
    const bool known = !(node.op->flags & kDispatchersOwn) && !node.op->withdrawn;
    crossing.compute = known && resolve(node, args, compute) ? compute : bp_dtype{BP_DTYPE_NONE};
  } catch (const Error&) {
    crossing.compute = BP_DTYPE_NONE;
  }
  for (size_t i = 0; i < args.size(); ++i) by_reference(arguments[i], args[i]);
  crossing.args = args.data();
  crossing.results = results.data();
  crossing.n_args = node.n_arguments;
  crossing.n_results = node.n_results;
  crossing.shares = record.def.promote;
  crossing.op_flags = record.def.flags;
  crossing.faults = faults_in(record.def.faults, crossing.compute);
  crossing.region = record.def.region;
  crossing.join = record.def.join;
  crossing.flags = node.flags & Node::kRecomputed ? BP_GRAPH_NODE_RECOMPUTED : 0;
  if (node.location < graph_.locations().size()) {
    const Location& at = graph_.locations()[node.location];
    crossing.source = sources_.emplace_back(at.file + ":" + std::to_string(at.line)).c_str();
  }
  nodes_.push_back(crossing);
}

CrossingGraph::CrossingGraph(const Graph& graph, std::span<const int64_t> symbols, std::span<const NodeId> nodes,
                             std::span<const ValueId> outputs)
    : graph_(graph), symbols_(symbols) {
  std::unordered_set<ValueId> known;
  for (const NodeId id : nodes) {
    const Node& node = graph.node(id);
    Graph::each_value(graph.arguments(node), [&](ValueId v) {
      const Value& value = graph.value(v);
      if (!known.insert(v).second) return;
      if (value.kind == Value::Kind::kConstant && !graph.constants()[value.index].live) return;
      input_values_.push_back(v);
      inputs_.push_back(number(v));
    });
    for (uint32_t i = 0; i < node.n_results; ++i) known.insert(node.first_result + i);
  }
  for (const NodeId id : nodes) add_node(id);
  for (const ValueId v : outputs) outputs_.push_back(number(v));
  crossing_.header = BP_HEADER(bp_graph);
  crossing_.values = {values_.data(), static_cast<uint32_t>(values_.size()), sizeof(bp_graph_value)};
  crossing_.nodes = {nodes_.data(), static_cast<uint32_t>(nodes_.size()), sizeof(bp_graph_node)};
  crossing_.inputs = inputs_.data();
  crossing_.n_inputs = static_cast<uint32_t>(inputs_.size());
  crossing_.outputs = outputs_.data();
  crossing_.n_outputs = static_cast<uint32_t>(outputs_.size());
}

}  // namespace backplane::core::graph
