// The calls that make a value of a graph a view of another one, or may do so: they are repeated on a caller's tensor.
#pragma once

#include <unordered_map>
#include <vector>

#include "backplane/tensor.hpp"
#include "graph/graph.hpp"

namespace backplane::core::graph {

struct ViewChain {
  ValueId base;  // kNone: it was not reached
  ValueId value;
  std::vector<NodeId> nodes;  // that take the value, the first one first; none: it is the base
};

// From `value` up to the first one for which `is_base(id)`.
template <class IsBase>
ViewChain view_chain(const Graph& graph, ValueId value, IsBase is_base) {
  ViewChain chain{kNone, value, {}};
  while (!is_base(value)) {
    if (graph.value(value).kind != Value::Kind::kResult) return chain;
    const Node& node = graph.node(graph.value(value).node);
    if (!(node.op->flags & (BP_OP_VIEW | BP_OP_MAYBE_VIEW))) return chain;
    const Argument& viewed = graph.arguments(node)[static_cast<size_t>(node.op->record->def.alias)];
    if (!viewed.is_value()) return chain;  // a number
    chain.nodes.insert(chain.nodes.begin(), graph.value(value).node);
    value = viewed.value();
  }
  chain.base = value;
  return chain;
}

// The value, of a tensor in the place of the base, at the active levels and on the tape. Sizes are numbers.
Tensor taken(const Graph& graph, const ViewChain& chain, const Tensor& base);

// Results that are arguments, tensors from outside, or other results, or views of these: derivatives of a graph would
// give them memory of their own.
class SharedResults {
 public:
  explicit SharedResults(const Graph& graph);
  // The values that are computed: all other outputs, and what several results are views of.
  const std::vector<ValueId>& computed() const { return computed_; }
  // All outputs, of the computed ones.
  std::vector<Tensor> all(const Graph& graph, std::span<const Tensor> inputs, std::vector<Tensor> computed) const;

 private:
  std::vector<ValueId> computed_;
  // Per output: among the computed ones; where it has a base that is an output, that one.
  std::vector<size_t> place_;
  std::vector<ViewChain> chains_;               // per output; without base: it is computed
  std::unordered_map<ValueId, size_t> hidden_;  // what several results are views of, and is none: its place
};

}  // namespace backplane::core::graph
