// A graph that transforms call: its results have derivatives, and its updates are carried out afterwards.
#include "backplane/graph.hpp"

#include <algorithm>

#include "backplane/autograd.hpp"
#include "graph/extract.hpp"
#include "graph/kept_inputs.hpp"
#include "graph/plans/draws.hpp"
#include "graph/updates.hpp"
#include "graph/view_chain.hpp"
#include "levels/level.hpp"
#include "memory/process/epoch.hpp"
#include "tape/node.hpp"
#include "trace/derived_graphs.hpp"

namespace backplane {

using namespace core;

// A tensor from outside may get a value that depends on no followed argument. Such a value does not belong to the
// transforms.
static void put_unmoved(DerivedGraphs& derived, const std::vector<graph::ValueId>& computed, const graph::Graph& whole,
                        std::span<const Tensor> inputs, std::vector<Tensor>& values) {
  std::vector<Tensor> args(inputs.begin(), inputs.end());  // not the copies that are kept, which are the transforms'
  for (const graph::Constant& c : whole.constants()) args.push_back(c.tensor);
  Level* lowest = thread_state.level;
  if (!lowest || std::none_of(args.begin(), args.end(), [](const Tensor& t) { return impl(t)->wrapper; })) return;
  while (lowest->below) lowest = lowest->below;
  std::vector<bool> followed;
  for (const Tensor& t : args) followed.push_back(impl(t)->wrapper || (grad_enabled() && wants_grad(impl(t))));
  const auto updated = std::span(whole.outputs).subspan(whole.n_results());
  std::vector<size_t> of;
  for (size_t k = 0; k < computed.size(); ++k)
    if (std::find(updated.begin(), updated.end(), computed[k]) != updated.end()) of.push_back(k);
  const auto unmoved = derived.unmoved(followed, of);
  if (!unmoved->graph) return;
  std::vector<Tensor> own;
  for (const size_t i : unmoved->arguments) own.push_back(args[i]);
  const BelowLevel outside(*lowest);
  std::vector<Tensor> found = unmoved->graph->run(own, {});
  for (size_t k = 0; k < found.size(); ++k) values[unmoved->results[k]] = std::move(found[k]);
}

TransformableGraph::TransformableGraph(const Graph& graph) : graph_(graph) {
  CallGuard guard;
  const graph::Graph& whole = *graph.get();
  std::vector<graph::ValueId> inputs;
  for (const graph::Input& input : whole.inputs()) inputs.push_back(input.value);
  for (const graph::Constant& c : whole.constants()) inputs.push_back(c.value);
  shared_ = std::make_shared<const graph::SharedResults>(whole);
  derived_ = std::make_shared<DerivedGraphs>(graph::extract(whole, inputs, shared_->computed()),
                                             graph.options().memory_budget);
}

std::vector<Tensor> TransformableGraph::call(std::span<const Tensor> inputs,
                                             std::span<bp_generator_state* const> generators) const {
  CallGuard guard;
  std::vector<Tensor> args = graph::inputs_to_keep(*graph_.get(), inputs);
  for (Tensor& constant : graph::constants_to_keep(*graph_.get())) args.push_back(std::move(constant));
  const graph::Updates updates(*graph_.get());
  updates.check(inputs);
  const auto states = std::make_shared<const DrawStates>(graph::reserve_draws(*graph_.get(), generators, {}));
  std::vector<Tensor> computed;
  if (!shared_->computed().empty()) computed = call_derived(derived_, args, states);
  if (!updates.empty() && states->empty()) put_unmoved(*derived_, shared_->computed(), *graph_.get(), inputs, computed);
  return updates.carry_out(inputs, shared_->all(*graph_.get(), inputs, std::move(computed)));
}

const std::string& TransformableGraph::refusal(const Graph& graph) { return graph.get()->not_of_ops; }

}  // namespace backplane
