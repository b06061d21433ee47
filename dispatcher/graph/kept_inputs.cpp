#include "graph/kept_inputs.hpp"

#include <algorithm>

#include "backplane/autograd.hpp"
#include "call/formulas/role_calls.hpp"
#include "tape/node.hpp"

namespace backplane::core::graph {

namespace {

// With recorded copies in the places of those that will be updated. `kind`: that of all.
void copy_updated(const Graph& graph, Value::Kind kind, std::vector<Tensor>& kept) {
  for (const Update& update : graph.updates) {
    const Value& target = graph.value(update.target);
    if (target.kind == kind && target.index < kept.size()) kept[target.index] = roles::copy(impl(kept[target.index]));
  }
}

}  // namespace

std::vector<Tensor> inputs_to_keep(const Graph& graph, std::span<const Tensor> inputs) {
  std::vector<Tensor> kept(inputs.begin(), inputs.end());
  const bool records = grad_enabled();
  const auto is_followed = [&](const Tensor& t) { return impl(t)->wrapper || (records && wants_grad(impl(t))); };
  if (std::any_of(kept.begin(), kept.end(), is_followed)) copy_updated(graph, Value::Kind::kInput, kept);
  return kept;
}

std::vector<Tensor> constants_to_keep(const Graph& graph) {
  std::vector<Tensor> kept;
  for (const Constant& c : graph.constants()) kept.push_back(c.tensor);
  copy_updated(graph, Value::Kind::kConstant, kept);
  return kept;
}

}  // namespace backplane::core::graph
