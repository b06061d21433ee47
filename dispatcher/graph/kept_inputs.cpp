#include "graph/kept_inputs.hpp"

#include <algorithm>

#include "backplane/autograd.hpp"
#include "call/role_calls.hpp"
#include "tape/node.hpp"

namespace backplane::core::graph {

std::vector<Tensor> inputs_to_keep(const Graph& graph, std::span<const Tensor> inputs) {
  std::vector<Tensor> kept(inputs.begin(), inputs.end());
  const bool records = grad_enabled();
  const auto is_followed = [&](const Tensor& t) { return impl(t)->wrapper || (records && wants_grad(impl(t))); };
  if (std::none_of(kept.begin(), kept.end(), is_followed)) return kept;
  for (const Update& update : graph.updates) {
    const Value& target = graph.value(update.target);
    if (target.kind == Value::Kind::kInput && target.index < kept.size())
      kept[target.index] = roles::copy(impl(inputs[target.index]));
  }
  return kept;
}

std::vector<Tensor> constants_to_keep(const Graph& graph) {
  std::vector<Tensor> kept;
  for (const Constant& c : graph.constants()) kept.push_back(c.tensor);
  for (const Update& update : graph.updates) {
    const Value& target = graph.value(update.target);
    if (target.kind == Value::Kind::kConstant) kept[target.index] = roles::copy(impl(kept[target.index]));
  }
  return kept;
}

}  // namespace backplane::core::graph
