#include "graph/passes/moved_outputs.hpp"

#include "backplane/graph_function.hpp"
#include "tape/node.hpp"

namespace backplane::core::graph {
namespace {

// The values among the node's arguments in which its op has a derivative.
template <class Visit>
void each_moving(const Graph& graph, const Node& node, MoveMode mode, Visit visit) {
  const std::span<const Argument> arguments = graph.arguments(node);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const bp_formula* formula = (mode == MoveMode::kForward ? node.op->jvp_of_arg : node.op->vjp_of_arg)[i];
    if (!formula || !(formula->flags & BP_FORMULA_ZERO)) Graph::each_value(arguments.subspan(i, 1), visit);
  }
}

}  // namespace

std::vector<bool> constant_outputs(const Graph& graph, const std::vector<bool>& wanted, MoveMode mode) {
  std::vector<bool> moved(graph.values().size(), false), constant;
  for (size_t i = 0; i < wanted.size(); ++i) moved[graph.inputs()[i].value] = wanted[i];
  for (const Node& node : graph.nodes()) {
    bool leads = false;
    each_moving(graph, node, mode, [&](ValueId v) { leads = leads || moved[v]; });
    for (uint32_t j = 0; j < node.n_results; ++j)
      moved[node.first_result + j] = leads && is_inexact(graph.value(node.first_result + j).dtype);
  }
  for (const ValueId v : graph.outputs) constant.push_back(!moved[v]);
  return constant;
}

std::vector<uint64_t> moved_outputs(const Graph& graph, MoveMode mode) {
  std::vector<uint64_t> leads(graph.values().size(), 0), moved;
  for (size_t j = 0; j < graph.outputs.size(); ++j) leads[graph.outputs[j]] |= GraphFunction::Forward::bit(j);
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
    uint64_t outputs = 0;
    for (uint32_t j = 0; j < node->n_results; ++j)
      if (is_inexact(graph.value(node->first_result + j).dtype)) outputs |= leads[node->first_result + j];
    if (outputs) each_moving(graph, *node, mode, [&](ValueId v) { leads[v] |= outputs; });
  }
  for (const Input& input : graph.inputs()) moved.push_back(leads[input.value]);
  return moved;
}

}  // namespace backplane::core::graph
