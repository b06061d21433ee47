// Which nodes the fuser takes. Elementwise ops and reductions are those that kernels have made known; casts and views
// are those that the graph says are.
#include "fuse/node_kind.hpp"

namespace backplane::cpu::fuse {
namespace {

NodePlan none(const char* reason) {
  NodePlan plan;
  plan.reason = reason;
  return plan;
}

bool is_number(const bp_value& arg) { return arg.tag >= BP_TAG_BOOL && arg.tag <= BP_TAG_COMPLEX; }

NodePlan map_of(const GraphView& graph, uint32_t i, ElementwiseOp op) {
  const auto args = graph.args(i);
  const bp_graph_node& node = graph.node(i);
  if (node.n_results != 1 || args.size() != static_cast<size_t>(op.tensors + op.scalars))
    return none("its arguments differ from the arguments of the cpu's kernel");
  bool reads = false;
  for (size_t k = 0; k < args.size(); ++k) {
    const bool tensor = args[k].tag == BP_TAG_REF && k < static_cast<size_t>(op.tensors);
    if (!tensor && !is_number(args[k])) return none("an argument is not a tensor and not a number");
    reads = reads || tensor;
  }
  if (!reads) return none("it reads no tensor");
  const Elementwise& table = op.row->table;
  const bp_dtype loop = node.compute < BP_DTYPE_COUNT ? loop_dtype(table, node.compute) : bp_dtype{BP_DTYPE_NONE};
  if (loop == BP_DTYPE_NONE || table.inner[loop] == nullptr) return none("the cpu has no loop for the dtype");
  NodePlan plan;
  plan.kind = NodeKind::kMap;
  plan.map = op;
  return plan;
}

// The last axes, in any order, each once; how many. 0: others.
size_t last_axes(const bp_value& axes, size_t ndim) {
  if (axes.tag != BP_TAG_INT_LIST || axes.count == 0 || axes.count > ndim) return 0;
  uint64_t seen = 0;
  for (uint32_t k = 0; k < axes.count; ++k) {
    const int64_t from_end = static_cast<int64_t>(ndim) - 1 - axes.u.ints[k];
    if (from_end < 0 || from_end >= axes.count || (seen >> from_end & 1) != 0) return 0;
    seen |= uint64_t{1} << from_end;
  }
  return axes.count;
}

// How many elements the last dims have; kLongestRow + 1: too many, 0: none, or not known yet.
int64_t row_length(Dims dims) {
  int64_t count = 1;
  for (const int64_t size : dims) {
    if (size <= 0) return 0;
    count = size > kLongestRow ? kLongestRow + 1 : std::min(count * size, kLongestRow + 1);
  }
  return count;
}

// The first axes in any order, each once, and not all; how many. 0: others.
size_t first_axes(const bp_value& axes, size_t ndim) {
  if (axes.tag != BP_TAG_INT_LIST || axes.count == 0 || axes.count >= ndim) return 0;
  uint64_t seen = 0;
  for (uint32_t k = 0; k < axes.count; ++k) {
    const int64_t axis = axes.u.ints[k];
    if (axis < 0 || axis >= axes.count || (seen >> axis & 1) != 0) return 0;
    seen |= uint64_t{1} << axis;
  }
  return axes.count;
}

// A reduction over the first axes.
NodePlan columns_of(const GraphView& graph, uint32_t i, NodePlan plan) {
  const Dims dims = graph.dims(plan.operand);
  const size_t first = first_axes(graph.args(i)[1], dims.size());
  if (first == 0) return none("it reduces over axes that are not the first ones or the last ones");
  plan.kind = NodeKind::kColumns;
  plan.columns = ColumnReduction::find(graph.node(i).op);
  plan.reduced = dims.size() - first;
  const bp_dtype dtype = reduced_dtype(graph, i);
  if (plan.columns == nullptr || !plan.columns->takes(dtype, graph.value(graph.node(i).results[0]).dtype))
    return none("the cpu has no loop for the dtype over the first axes");
  const int64_t rows = row_length(dims.first(first)), columns = row_length(dims.last(plan.reduced));
  // A single column is contiguous, so kernels reduce it as a row.
  if (rows == 0 || columns <= 1) return none("its sizes are 0, 1, or not known yet");
  if (columns > kLongestRow) return none("its rows are too long to stay in the cache");
  return plan;
}

// Of more elements than stay in the cache.
NodePlan whole_of(const GraphView& graph, uint32_t i, NodePlan plan) {
  plan.kind = NodeKind::kWhole;
  plan.whole = WholeReduction::find(graph.node(i).op);
  plan.reduced = 0;
  const bp_dtype dtype = reduced_dtype(graph, i);
  if (plan.whole == nullptr || !plan.whole->takes(dtype, graph.value(graph.node(i).results[0]).dtype))
    return none("the cpu has no loop for the dtype over all axes of so many elements");
  return plan;
}

NodePlan reduction_of(const GraphView& graph, uint32_t i, const RowReduction* reduction) {
  const auto args = graph.args(i);
  if (args.size() < 2 || args[0].tag != BP_TAG_REF) return none("it reduces no tensor");
  NodePlan plan;
  plan.kind = NodeKind::kReduce;
  plan.reduction = reduction;
  plan.operand = args[0].u.i;
  const Dims dims = graph.dims(plan.operand);
  plan.reduced = last_axes(args[1], dims.size());
  if (plan.reduced == 0) return columns_of(graph, i, plan);
  if (!reduction->takes(reduced_dtype(graph, i))) return none("the cpu has no loop for the dtype");
  const int64_t count = row_length(dims.last(plan.reduced));
  if (count == 0) return none("its rows are empty, or of a size that is not known yet");
  if (count > kLongestRow)
    return plan.reduced == dims.size() ? whole_of(graph, i, plan) : none("its rows are too long to stay in the cache");
  return plan;
}

}  // namespace

bp_dtype reduced_dtype(const GraphView& graph, uint32_t i) {
  const bp_graph_node& node = graph.node(i);
  return (node.shares & 1) != 0 ? node.compute : graph.value(node.args[0].u.i).dtype;
}

NodePlan plan_of(const GraphView& graph, uint32_t i, bp_device device) {
  const bp_graph_node& node = graph.node(i);
  const auto elsewhere = [&](int64_t value) {
    const bp_device& at = graph.value(value).device;
    return at.backend != device.backend || at.ordinal != device.ordinal;
  };
  if (node.compute == BP_DTYPE_NONE) return none("the host does not pass the call to compilers");
  bool foreign = node.n_results != 1 || elsewhere(node.results[0]);
  graph.for_each_read(i, [&](int64_t value) { foreign = foreign || elsewhere(value); });
  if (foreign) return none("it has several results, or values on another device");
  for (const int64_t size : graph.dims(node.results[0]))
    if (size == 0) return none("it has no elements");
  if (const ElementwiseOp op = find_elementwise(node.op); op.row != nullptr) return map_of(graph, i, op);
  if (const RowReduction* reduction = RowReduction::find(node.op)) return reduction_of(graph, i, reduction);
  NodePlan plan;
  if (graph.region(i) == BP_REGION_CAST) plan.kind = NodeKind::kCast;
  if (graph.region(i) == BP_REGION_VIEW) plan.kind = NodeKind::kSame;
  if (plan.kind == NodeKind::kNone) return none("it is not an elementwise op or a reduction");
  if (node.n_args < 1 || node.args[0].tag != BP_TAG_REF) return none("it reads no tensor");
  plan.operand = node.args[0].u.i;
  return plan;
}

}  // namespace backplane::cpu::fuse
