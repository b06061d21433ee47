#include "graph/view_chain.hpp"

#include <unordered_map>

#include "graph/interpret.hpp"

namespace backplane::core::graph {

Tensor taken(const Graph& graph, const ViewChain& chain, const Tensor& base) {
  if (chain.nodes.empty()) return base;
  std::vector<Tensor> values(graph.values().size());
  values[chain.base] = base;
  for (const NodeId id : chain.nodes) call_node({graph, values, {}, {}, {}}, id, &values[graph.node(id).first_result]);
  return values[chain.value];
}

namespace {

// The tensor at the end of a chain of views; the value itself if it is not a view.
ValueId whole_of(const Graph& graph, ValueId value) {
  const ViewChain chain = view_chain(graph, value, [](ValueId) { return false; });
  if (chain.nodes.empty()) return value;
  const Node& first = graph.node(chain.nodes.front());
  return graph.arguments(first)[static_cast<size_t>(first.op->record->def.alias)].value();
}

}  // namespace

// Of what a graph changes in place, its last outputs, nothing is shared here: see Update.
SharedResults::SharedResults(const Graph& graph) : place_(graph.outputs.size(), 0) {
  std::unordered_map<ValueId, size_t> first;  // which output a value is
  for (size_t k = 0; k < graph.outputs.size(); ++k) first.try_emplace(graph.outputs[k], k);
  const auto is_base = [&](ValueId own, size_t k) {
    return [&, own, k](ValueId v) {
      if (graph.value(v).kind != Value::Kind::kResult) return true;
      const auto found = first.find(v);
      return found != first.end() && (v != own || found->second != k);
    };
  };
  std::unordered_map<ValueId, std::vector<size_t>> views_of;  // results that are views of what is none, by that
  for (size_t k = 0; k < graph.outputs.size(); ++k) {
    const ValueId v = graph.outputs[k];
    const bool is_result = k < graph.n_results();
    chains_.push_back(is_result ? view_chain(graph, v, is_base(v, k)) : ViewChain{kNone, v, {}});
    if (is_result && chains_[k].base == kNone) views_of[whole_of(graph, v)].push_back(k);
  }
  for (const auto& [whole, views] : views_of) {
    if (views.size() < 2) continue;
    hidden_.emplace(whole, computed_.size());
    computed_.push_back(whole);
    for (const size_t k : views)
      chains_[k] = view_chain(graph, graph.outputs[k], [w = whole](ValueId v) { return v == w; });
  }
  for (size_t k = 0; k < graph.outputs.size(); ++k) {
    const ValueId base = chains_[k].base;
    if (base == kNone) {
      place_[k] = computed_.size();
      computed_.push_back(graph.outputs[k]);
    } else if (graph.value(base).kind == Value::Kind::kResult && !hidden_.contains(base)) {
      place_[k] = first.at(base);
    }
  }
}

std::vector<Tensor> SharedResults::all(const Graph& graph, std::span<const Tensor> inputs,
                                       std::vector<Tensor> computed) const {
  std::vector<Tensor> outputs(graph.outputs.size());
  for (size_t k = 0; k < outputs.size(); ++k) {
    // Down to existing values, and back: a view may come before its base.
    std::vector<size_t> open{k};
    while (!open.empty()) {
      const size_t j = open.back();
      const ViewChain& chain = chains_[j];
      if (chain.base == kNone) {
        outputs[j] = computed[place_[j]];
      } else if (const Value& base = graph.value(chain.base); base.kind == Value::Kind::kInput) {
        outputs[j] = taken(graph, chain, inputs[base.index]);
      } else if (base.kind == Value::Kind::kConstant) {
        outputs[j] = taken(graph, chain, graph.constants()[base.index].tensor);
      } else if (const auto hidden = hidden_.find(chain.base); hidden != hidden_.end()) {
        outputs[j] = taken(graph, chain, computed[hidden->second]);
      } else if (outputs[place_[j]]) {
        outputs[j] = taken(graph, chain, outputs[place_[j]]);
      } else {
        open.push_back(place_[j]);
        continue;
      }
      open.pop_back();
    }
  }
  return outputs;
}

}  // namespace backplane::core::graph
