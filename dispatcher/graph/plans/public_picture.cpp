#include "backplane/graph_picture.hpp"

#include <utility>

#include "graph/cost.hpp"
#include "graph/interpret.hpp"
#include "graph/passes/optimize.hpp"
#include "graph/plans/picture.hpp"
#include "graph/plans/plan_build.hpp"
#include "graph/sizes.hpp"
#include "memory/process/epoch.hpp"

namespace backplane {
namespace {

// After the passes, and the values of its symbols.
std::pair<std::shared_ptr<const core::graph::Graph>, std::vector<int64_t>> as_it_runs(const Graph& graph,
                                                                                      std::span<const Tensor> inputs,
                                                                                      const char* who) {
  BP_CHECK(graph, VALUE, who, ": found an empty graph; expected one that make_graph gave");
  std::vector<Shape> shapes;
  for (const Tensor& input : inputs) shapes.push_back(input.shape());
  std::vector<int64_t> symbols = graph.get()->bind(shapes);
  graph.get()->check(symbols);
  if (!core::graph::is_sized_by_inputs(*graph.get())) return {core::graph::optimize(*graph.get()), std::move(symbols)};
  return {core::graph::optimize(*core::graph::specialize(*graph.get(), symbols)), {}};
}

}  // namespace

std::string graph_dot(const Graph& graph, std::span<const Tensor> inputs, GraphColors colors) {
  core::CallGuard guard;
  auto [better, symbols] = as_it_runs(graph, inputs, "graph_dot");
  const auto functions = core::graph::functions_of(better);
  const core::graph::Plan plan(core::graph::build_plan(better, std::move(symbols), inputs, {}, true, functions));
  return core::graph::picture(plan.data(), colors);
}

std::vector<NodeCost> graph_costs(const Graph& graph, std::span<const Tensor> inputs) {
  core::CallGuard guard;
  const auto [better, symbols] = as_it_runs(graph, inputs, "graph_costs");
  const std::vector<core::graph::NodeCost> costs = core::graph::costs(*better, symbols);
  std::vector<NodeCost> found;
  for (core::graph::NodeId id = 0; id < costs.size(); ++id)
    if (!better->is_erased(id))
      found.push_back({std::string(better->node(id).op->record->name), costs[id].flops, costs[id].bytes});
  return found;
}

}  // namespace backplane
