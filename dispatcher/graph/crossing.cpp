#include "graph/crossing.hpp"

#include "call/kernel_form.hpp"
#include "call/operand_checks.hpp"
#include "call/result_shapes.hpp"
#include "call/row.hpp"
#include "memory/new_tensor.hpp"
#include "record/dtype_rules.hpp"
#include "record/number_range.hpp"

namespace backplane::core::graph {
namespace {

constexpr uint64_t kDispatchersOwn = BP_OP_COMPOSITE | BP_OP_HIGHER_ORDER | BP_OP_DYNAMIC;

bool is_view(uint64_t flags) { return (flags & (BP_OP_VIEW | BP_OP_MAYBE_VIEW)) != 0; }

}  // namespace

Crossing::Crossing(const Graph& graph, std::span<const int64_t> symbols) : graph_(graph) {
  add_values(symbols);
  for (NodeId id = 0; id < graph.nodes().size(); ++id) add_node(id, symbols);
}

void Crossing::add_values(std::span<const int64_t> symbols) {
  for (ValueId v = 0; v < graph_.values().size(); ++v) {
    const Value& value = graph_.value(v);
    std::vector<int64_t> sizes;
    for (const Dim dim : graph_.dims(v)) sizes.push_back(graph_.sizes.evaluate(dim, symbols));
    handles_.push_back(Tensor::adopt(new_handle(device_at(value.device), value.dtype, value.ndim, sizes.data())));
    bp_graph_value& crossing = values_.emplace_back();
    crossing.dtype = value.dtype;
    crossing.ndim = value.ndim;
    crossing.dims = handles_.back().get()->dl.shape;
    crossing.device = value.device;
    if (value.kind == Value::Kind::kConstant && !graph_.constants()[value.index].live)
      crossing.constant = graph_.constants()[value.index].tensor.get();
    results_.push_back(v);
  }
}

bool Crossing::resolve(const Node& node, std::vector<bp_value>& args, bp_dtype& compute) {
  const OpRecord& record = *node.op->record;
  if ((node.op->flags & kDispatchersOwn) != 0 || node.op->withdrawn) return false;
  const auto n = static_cast<int32_t>(args.size());
  bp_value outs[kMaxResults] = {};
  const Call call{*node.op, args.data(), n, outs, node.op->n_results, ~kCreationKey};
  compute = compute_dtype(record, args.data(), n);
  bp_value replaced[kMaxArgs];
  if ((record.def.dtype_flags & BP_DTYPE_COMPARES) != 0 && with_infinities(record, args.data(), n, compute, replaced))
    return false;
  if (!is_view(node.op->flags)) {
    // What somebody else's kernel would run is not the backend's to fuse.
    const Device& device = device_of_call(call);
    ResultShapes shapes(call);
    if (lacked_dtype(call, device, compute) != BP_DTYPE_NONE) return false;
    const KernelRow* row = pick_row(call, device, compute, shapes, nullptr);
    if (row == nullptr || row->owner != device.backend->owner) return false;
  }
  for (int32_t i = 0; i < n; ++i) {
    bp_value& v = args[static_cast<size_t>(i)];
    if (v.tag == BP_TAG_TENSOR || v.tag == BP_TAG_TENSOR_LIST || v.tag == BP_TAG_ABSENT) continue;
    const bool promotes = i < 64 && (record.def.promote >> i & 1) != 0;
    if (record.args[static_cast<size_t>(i)].type == BP_TYPE_TENSOR) {
      if (promotes) check_number(compute, v, record, i);
      v.flags |= BP_VALUE_NUMBER;
    } else if (record.args[static_cast<size_t>(i)].type == BP_TYPE_SCALAR) {
      v = prepare_scalar(record, i, v, promotes ? compute : bp_dtype{BP_DTYPE_NONE});
    }
  }
  resolve_args(record, args.data(), resolved_.emplace_back());
  return true;
}

bp_value Crossing::crossing_argument(const bp_value& arg, const Argument& from) {
  bp_value v = arg;
  if (from.is_value()) {
    v = bp_value{};
    v.tag = BP_TAG_REF;
    v.u.i = from.value();
  } else if (from.is_values()) {
    auto& list = ints_.emplace_back();
    for (const ValueId value : from.values()) list.push_back(value == kNone ? -1 : int64_t{value});
    v = bp_value{};
    v.tag = BP_TAG_REF_LIST;
    v.count = static_cast<uint32_t>(list.size());
    v.u.ints = list.data();
  }
  return v;
}

void Crossing::add_node(NodeId id, std::span<const int64_t> symbols) {
  const Node& node = graph_.node(id);
  bp_graph_node& crossing = nodes_.emplace_back();
  if (graph_.is_erased(id)) return;
  std::vector<bp_value> call;
  for (const Argument& a : graph_.arguments(node)) {
    bp_value v = a.plain;
    if (a.is_value()) {
      v = tensor_value(impl(handles_[a.value()].get()));
    } else if (a.is_values()) {
      auto& list = lists_.emplace_back();
      for (const ValueId one : a.values()) list.push_back(one == kNone ? nullptr : handles_[one].get());
      v.u.tensors = list.data();
    } else if (a.is_draw() || a.is_graph()) {
      v.count = 0;
      v.u.p = nullptr;
    } else if (a.is_symbolic()) {
      auto& list = ints_.emplace_back();
      for (const Dim dim : a.dims()) list.push_back(graph_.sizes.evaluate(dim, symbols));
      v.flags &= static_cast<uint16_t>(~Argument::kSymbolic);
      if (v.tag == BP_TAG_INT)
        v.u.i = list[0];
      else
        v.u.ints = list.data();
    }
    call.push_back(v);
  }
  bp_dtype compute = BP_DTYPE_NONE;
  try {
    if (!resolve(node, call, compute)) compute = BP_DTYPE_NONE;
  } catch (const Error&) {
    compute = BP_DTYPE_NONE;  // the call itself says what is wrong, when it runs
  }
  auto& args = args_.emplace_back();
  for (size_t i = 0; i < call.size(); ++i) args.push_back(crossing_argument(call[i], graph_.arguments(node)[i]));
  crossing.op = node.op->record->def.name;
  crossing.op_index = node.op->handle;
  crossing.revision = node.op->record->def.revision;
  crossing.args = args.data();
  crossing.n_args = static_cast<uint32_t>(args.size());
  crossing.results = results_.data() + node.first_result;
  crossing.n_results = node.n_results;
  crossing.compute = compute;
  crossing.shares = node.op->record->def.promote;
  crossing.op_flags = node.op->record->def.flags;
}

const bp_graph* Crossing::of(std::span<const NodeId> nodes, std::span<const ValueId> inputs,
                             std::span<const ValueId> outputs) {
  chosen_.clear();
  for (const NodeId id : nodes) chosen_.push_back(nodes_[id]);
  inputs_.assign(inputs.begin(), inputs.end());
  outputs_.assign(outputs.begin(), outputs.end());
  crossing_ = {BP_HEADER(bp_graph),
               {values_.data(), static_cast<uint32_t>(values_.size()), sizeof(bp_graph_value)},
               {chosen_.data(), static_cast<uint32_t>(chosen_.size()), sizeof(bp_graph_node)},
               inputs_.data(),
               outputs_.data(),
               static_cast<uint32_t>(inputs_.size()),
               static_cast<uint32_t>(outputs_.size())};
  return &crossing_;
}

}  // namespace backplane::core::graph
