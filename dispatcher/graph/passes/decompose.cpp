#include "graph/passes/decompose.hpp"

#include <algorithm>

#include "backplane/graph_decompose.hpp"
#include "call/formulas/decomposition.hpp"
#include "call/formulas/run_formula.hpp"
#include "call/operand_checks.hpp"
#include "graph/interpret.hpp"
#include "levels/level.hpp"
#include "memory/devices/device.hpp"
#include "memory/process/epoch.hpp"
#include "record/dtype_rules.hpp"
#include "record/shape_rules.hpp"

namespace backplane::core::graph {
namespace {

// Takes the calls of a formula, and writes them before the node that they make up.
class Decomposing final : public Level {
 public:
  Decomposing(Graph& graph, const KeepsOp& keeps)
      : Level("decompose", Takes::kEveryCall), graph_(graph), keeps_(keeps), n_nodes_(graph.nodes().size()) {}

  size_t run() {
    size_t replaced = 0;
    for (NodeId id = 0; id < n_nodes_; ++id)
      if (!graph_.is_erased(id) && may_decompose(graph_.node(id))) replaced += replace(id);
    return replaced;
  }

  void handle(const Call& call) override {
    if (splits(call.op, device_of_operands(call))) return call_decomposition(call);
    record(call);
  }
  std::vector<Tensor> call_graph(const OpEntry& op, GraphFunction&, std::span<const Tensor>) override {
    detail::fail(BP_ERROR_NOT_IMPLEMENTED, op.record->name, ": takes a function, which a decomposition cannot hold");
  }

 private:
  bool splits(const OpEntry& op, const Device& device) const {
    return op.decompose && !(op.flags & (BP_OP_VIEW | BP_OP_MAYBE_VIEW)) &&
           ((op.flags & BP_OP_COMPOSITE) || !keeps_(op, device));
  }

  bool may_decompose(const Node& node) const {
    if (node.n_results == 0 || (node.op->flags & (BP_OP_RANDOM | BP_OP_HIGHER_ORDER | BP_OP_DYNAMIC))) return false;
    if (node.op->withdrawn.load(std::memory_order_acquire)) return false;
    if (!splits(*node.op, device_at(graph_.value(node.first_result).device))) return false;
    for (const bp_result_def& result : node.op->record->results)
      if (result.flags & BP_ARG_LIST) return false;
    bool known = true;
    for (const Argument& a : graph_.arguments(node)) known = known && !a.is_draw() && !a.is_graph() && !a.is_symbolic();
    const auto look = [&](ValueId v) {
      for (const Dim dim : graph_.dims(v)) known = known && dim.is_number();
    };
    Graph::each_value(graph_.arguments(node), look);
    return known;
  }

  bool replace(NodeId id) {
    const Node node = graph_.node(id);
    const auto first_new = static_cast<ValueId>(graph_.values().size());
    before_ = id;
    location_ = node.location;
    flags_ = node.flags;
    std::vector<Tensor> operands(first_new);
    Graph::each_value(graph_.arguments(node), [&](ValueId v) {
      if (!operands[v]) operands[v] = Tensor::adopt(traced(graph_.resolve(v)));
    });
    const NumbersOn device(graph_.device_of(node));
    bp_value outs[kMaxResults] = {};
    try {
      const NodeArguments arguments({graph_, operands, {}, {}, {}}, node);
      call(*node.op, arguments.data(), arguments.size(), outs, node.op->n_results);
    } catch (const Error&) {
      return false;  // what was written so far is used by nobody
    }
    std::vector<Tensor> results;
    for (int32_t i = 0; i < node.op->n_results; ++i) results.push_back(Tensor::adopt(outs[i].u.t));
    std::vector<ValueId> values;
    for (uint32_t i = 0; i < node.n_results; ++i) {
      values.push_back(value_of(impl(results[i])));
      // An older value is another tensor's.
      if (values[i] < first_new || !same_type(values[i], node.first_result + i)) return false;
    }
    for (uint32_t i = 0; i < node.n_results; ++i) graph_.replace_uses(node.first_result + i, values[i]);
    graph_.erase(id);
    return true;
  }

  bool same_type(ValueId a, ValueId b) const {
    return graph_.value(a).dtype == graph_.value(b).dtype && std::ranges::equal(graph_.dims(a), graph_.dims(b));
  }

  // A handle without data, wrapped, in which its value stands.
  TensorImpl* traced(ValueId value) {
    int64_t sizes[kMaxRank];
    const Value& v = graph_.value(value);
    std::transform(graph_.dims(value).begin(), graph_.dims(value).end(), sizes, [](Dim dim) { return dim.number(); });
    TensorImpl* inner = new_handle(device_at(v.device), v.dtype, v.ndim, sizes);
    inner->flags |= BP_TENSOR_WRAPPER;
    inner->node_output = value;
    return wrap(*this, inner);
  }
  ValueId value_of(TensorImpl* tensor) {
    const Wrapper* wrapper = wrapper_of(*this, tensor);
    return wrapper ? static_cast<ValueId>(wrapper->inner->node_output) : graph_.add_constant(Tensor::share(tensor));
  }

  void record(const Call& call) {
    const OpRecord& record = *call.op.record;
    BP_CHECK(!(call.op.flags & (BP_OP_DYNAMIC | BP_OP_RANDOM)), NOT_IMPLEMENTED, record.name,
             ": a decomposition that calls it stays whole in a graph");
    Device& device = device_of_operands(call);
    const bp_dtype compute = compute_dtype(record, call.args, call.n_args);
    std::vector<std::vector<Dim>> dims(static_cast<size_t>(call.n_outs));
    std::vector<Type> types;
    for (int32_t j = 0; j < call.n_outs; ++j) {
      ShapeResult shape;
      infer_shape(record, call.args, call.n_args, j, shape);
      bp_dtype dtype = result_dtype(record, call.args, call.n_args, j, compute);
      if (shape.is_view && shape.view_dtype != BP_DTYPE_NONE) dtype = shape.view_dtype;
      dims[static_cast<size_t>(j)].assign(shape.sizes, shape.sizes + shape.ndim);
      types.push_back({dtype, id_of(device), dims[static_cast<size_t>(j)]});
    }
    std::vector<Argument> arguments;
    for (int32_t i = 0; i < call.n_args; ++i) arguments.push_back(argument_of(call.args[i]));
    const NodeId node = graph_.insert_node(before_, call.op, arguments, types, location_, flags_);
    const ValueId first = graph_.node(node).first_result;
    for (int32_t j = 0; j < call.n_outs; ++j) call.outs[j] = tensor_value(traced(first + static_cast<ValueId>(j)));
  }

  Argument argument_of(const bp_value& v) {
    if (v.tag == BP_TAG_TENSOR) return Argument::of(value_of(impl(v.u.t)));
    if (v.tag != BP_TAG_TENSOR_LIST) return graph_.copy(v);
    std::vector<ValueId> ids;
    for (uint32_t k = 0; k < v.count; ++k) ids.push_back(v.u.tensors[k] ? value_of(impl(v.u.tensors[k])) : kNone);
    return graph_.list(ids);
  }

  Graph& graph_;
  const KeepsOp& keeps_;
  const size_t n_nodes_;
  NodeId before_ = kNone;
  uint32_t location_ = kNone;
  uint16_t flags_ = 0;
};

}  // namespace

size_t decompose(Graph& graph, const KeepsOp& keeps) {
  CallGuard guard;
  const size_t replaced = Decomposing(graph, keeps).run();
  graph.compact();
  return replaced;
}

size_t decompose_without_kernel(Graph& graph) {
  return decompose(graph, [](const OpEntry& op, const Device& device) {
    const core::Plan& plan = op.plan();
    if (device.backend->index >= plan.n_devices) return true;
    const DeviceSlot& slot = plan.devices[device.backend->index];
    return !slot.rows.empty() || slot.otherwise != DeviceRule::kDecomposition;
  });
}

}  // namespace backplane::core::graph

namespace backplane {

Graph decompose_graph(const Graph& graph, const std::function<bool(std::string_view op_name)>& keeps) {
  std::unique_ptr<core::graph::Graph> parts = graph.get()->clone();
  core::graph::decompose(*parts, [&](const core::OpEntry& op, const core::Device&) { return keeps(op.record->name); });
  return Graph(std::shared_ptr<const core::graph::Graph>(std::move(parts)));
}

}  // namespace backplane
