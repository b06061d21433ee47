#include "graph/passes/constant_folding.hpp"

#include <algorithm>

#include "backplane/device.hpp"
#include "call/dispatch.hpp"
#include "graph/interpret.hpp"
#include "graph/shown_values.hpp"
#include "memory/process/epoch.hpp"
#include "memory/tensors/tensor_impl.hpp"
#include "registry/ordered_ops.hpp"

namespace backplane::core::graph {
namespace {

constexpr uint64_t kLargest = 4096;  // bytes of a result that takes more than its operands

class Folding {
 public:
  explicit Folding(Graph& graph) : graph_(graph), values_(graph.values().size()) {
    for (const Constant& c : graph.constants())
      if (!c.live) values_[c.value] = c.tensor;
  }
  size_t run();

 private:
  bool may_fold(const Node& node) const;
  bool fold(NodeId id);

  Graph& graph_;
  std::vector<Tensor> values_;  // of what is constant
};

bool Folding::may_fold(const Node& node) const {
  if (node.op->flags & (BP_OP_RANDOM | BP_OP_HIGHER_ORDER | BP_OP_DYNAMIC | kOrdered)) return false;
  uint64_t operands = 0;
  bool known = true;
  for (const Argument& a : graph_.arguments(node)) known = known && !a.is_draw() && !a.is_graph() && !a.is_symbolic();
  if (!known) return false;
  Graph::each_value(graph_.arguments(node), [&](ValueId v) {
    known = known && values_[v];
    if (values_[v]) operands += values_[v].get()->nbytes;
  });
  uint64_t results = 0;
  for (uint32_t i = 0; known && i < node.n_results; ++i) {
    uint64_t bytes = static_cast<uint64_t>(dtype_size(graph_.value(node.first_result + i).dtype));
    for (const Dim dim : graph_.dims(node.first_result + i))
      known = known && dim.is_number() && !__builtin_mul_overflow(bytes, static_cast<uint64_t>(dim.number()), &bytes);
    known = known && !__builtin_add_overflow(results, bytes, &results);
  }
  return known && results <= std::max(kLargest, operands);
}

bool Folding::fold(NodeId id) {
  const Node& node = graph_.node(id);
  std::vector<Tensor> results(node.n_results);
  try {
    call_node({graph_, values_, {}, {}, {}}, id, results.data());
  } catch (const Error&) {
    return false;
  }
  std::copy(results.begin(), results.end(), values_.begin() + node.first_result);
  return true;
}

size_t Folding::run() {
  CallGuard guard;
  ExcludeKeys everything(~uint64_t{0});  // no transform and no tape sees the calls
  // The caller may change a result in place: it is made anew in each run.
  const std::vector<bool> shown = shown_values(graph_);
  std::vector<NodeId> folded;
  for (NodeId id = 0; id < graph_.nodes().size(); ++id)
    if (!graph_.is_erased(id) && may_fold(graph_.node(id)) && fold(id) && !shows_any(shown, graph_.node(id)))
      folded.push_back(id);
  for (const NodeId id : folded) {
    const Node node = graph_.node(id);
    for (uint32_t i = 0; i < node.n_results; ++i) {
      const ValueId value = node.first_result + i;
      graph_.replace_uses(value, graph_.add_constant(values_[value]));
    }
    graph_.erase(id);
  }
  if (!folded.empty()) graph_.compact();
  return folded.size();
}

}  // namespace

size_t fold_constants(Graph& graph) { return Folding(graph).run(); }

}  // namespace backplane::core::graph
