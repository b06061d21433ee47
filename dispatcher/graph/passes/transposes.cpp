#include "graph/passes/transposes.hpp"

#include <algorithm>
#include <map>

#include "graph/passes/products.hpp"

namespace backplane::core::graph {
namespace {

using Axes = std::vector<int64_t>;

class Transposes {
 public:
  explicit Transposes(Graph& graph)
      : graph_(graph), turned_(graph.values().size()), only_products_(graph.values().size(), true) {}
  size_t run();

 private:
  // A value that is another one with its axes in this order.
  struct Turned {
    const Axes* axes = nullptr;  // nullptr: it is not
    ValueId base = kNone;        // kNone: an elementwise op's, which there is once it is turned
  };
  void find(NodeId id);
  const Axes* axes_of(const Node& node);
  const Axes* common_axes(const Node& node) const;
  void ask_readers(NodeId id);
  bool is_turned(NodeId id) const {
    const Node& node = graph_.node(id);
    return is_elementwise(node) && turned_[node.first_result].axes && only_products_[node.first_result];
  }
  bool has_bases(NodeId id) const;
  void turn(NodeId id);

  static bool is_elementwise(const Node& node) {
    return (node.op->flags & BP_OP_ELEMENTWISE) && !(node.op->flags & BP_OP_RANDOM) && node.n_results == 1;
  }

  Graph& graph_;
  std::vector<Turned> turned_;       // by value
  std::vector<bool> only_products_;  // likewise: it is read by products alone, or by what is turned with it
  std::map<Axes, bool> orders_;      // each once
};

// Of a permutation that moves the last axis, along which memory runs, to the one before: which a product still takes as
// it lies.
const Axes* Transposes::axes_of(const Node& node) {
  const std::span<const Argument> arguments = graph_.arguments(node);
  if (node.op != &role_op(Role::kPermute) || !arguments[0].is_value()) return nullptr;
  const bp_value& order = arguments[1].plain;
  const auto ndim = static_cast<int64_t>(graph_.dims(arguments[0].value()).size());
  if (order.tag != BP_TAG_INT_LIST || arguments[1].is_symbolic() || order.count != ndim || ndim < 2) return nullptr;
  Axes axes(order.u.ints, order.u.ints + order.count);
  for (int64_t& axis : axes) axis += axis < 0 ? ndim : 0;
  if (axes[axes.size() - 2] != ndim - 1) return nullptr;
  return &orders_.try_emplace(std::move(axes)).first->first;
}

// The common axis order of all operands, except those of one element; nullptr without one.
const Axes* Transposes::common_axes(const Node& node) const {
  const std::span<const Dim> dims = graph_.dims(node.first_result);
  const Axes* common = nullptr;
  bool all = true;
  Graph::each_value(graph_.arguments(node), [&](ValueId v) {
    const std::span<const Dim> own = graph_.dims(v);
    if (own.empty()) return;
    const Axes* axes = turned_[v].axes;
    all = all && axes && (!common || common == axes) && std::equal(own.begin(), own.end(), dims.begin(), dims.end());
    common = axes;
  });
  return all ? common : nullptr;
}

void Transposes::find(NodeId id) {
  const Node& node = graph_.node(id);
  if (is_elementwise(node))
    turned_[node.first_result] = {common_axes(node), kNone};
  else if (const Axes* axes = axes_of(node))
    turned_[node.first_result] = {axes, graph_.arguments(node)[0].value()};
}

void Transposes::ask_readers(NodeId id) {
  if (is_product(graph_.node(id)) || is_turned(id)) return;
  Graph::each_value(graph_.arguments(graph_.node(id)), [&](ValueId v) { only_products_[v] = false; });
}

// An operand may be one that somebody else reads too, so that it stays as it was.
bool Transposes::has_bases(NodeId id) const {
  bool all = true;
  Graph::each_value(graph_.arguments(graph_.node(id)),
                    [&](ValueId v) { all = all && (!turned_[v].axes || turned_[v].base != kNone); });
  return all;
}

void Transposes::turn(NodeId id) {
  const Node node = graph_.node(id);
  const Axes& axes = *turned_[node.first_result].axes;
  const Type type = graph_.type(node.first_result);
  const std::vector<Dim> dims(type.dims.begin(), type.dims.end());
  std::vector<Dim> untransposed(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) untransposed[static_cast<size_t>(axes[i])] = dims[i];
  std::vector<Argument> arguments;
  for (const Argument& a : graph_.arguments(node))
    arguments.push_back(a.is_value() && turned_[a.value()].axes ? Argument::of(turned_[a.value()].base) : a);
  const NodeId computed = graph_.insert_node(
      id, *node.op, arguments, std::vector<Type>{{type.dtype, type.device, untransposed}}, node.location, node.flags);
  const ValueId base = graph_.node(computed).first_result;
  turned_[node.first_result].base = base;
  const Argument order[] = {Argument::of(base), graph_.copy(backplane::value(Shape(axes)))};
  const NodeId view = graph_.insert_node(id, role_op(Role::kPermute), order,
                                         std::vector<Type>{{type.dtype, type.device, dims}}, node.location, node.flags);
  graph_.replace_uses(node.first_result, graph_.node(view).first_result);
  graph_.erase(id);
}

size_t Transposes::run() {
  const auto n = static_cast<NodeId>(graph_.nodes().size());
  for (NodeId id = 0; id < n; ++id)
    if (!graph_.is_erased(id)) find(id);
  for (const ValueId v : graph_.outputs) only_products_[v] = false;
  for (const Symbol& s : graph_.symbols())
    if (s.value != kNone) only_products_[s.value] = false;
  for (NodeId id = n; id-- > 0;)
    if (!graph_.is_erased(id)) ask_readers(id);
  size_t count = 0;
  for (NodeId id = 0; id < n; ++id) {
    if (graph_.is_erased(id) || !is_turned(id) || !has_bases(id)) continue;
    turn(id);
    ++count;
  }
  if (count) graph_.compact();
  return count;
}

}  // namespace

size_t sink_transposes(Graph& graph) { return Transposes(graph).run(); }

}  // namespace backplane::core::graph
