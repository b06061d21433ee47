#include "graph/interpret.hpp"

#include <algorithm>
#include <utility>

#include "call/dispatch.hpp"
#include "call/formulas/run_formula.hpp"
#include "graph/graph_body.hpp"
#include "graph/sizes.hpp"
#include "memory/process/epoch.hpp"
#include "record/owned_value.hpp"

namespace backplane::core::graph {

NodeArguments::NodeArguments(const Environment& e, const Node& node) : n_args_(node.n_arguments) {
  const std::span<const Argument> arguments = e.graph.arguments(node);
  states_.reserve(arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Argument& a = arguments[i];
    bp_value& v = args_[i];
    v = a.plain;
    if (a.is_value()) {
      v = backplane::value(e.values[a.value()]);
    } else if (a.is_values()) {
      auto& list = tensors_.emplace_back();
      for (const ValueId one : Argument(a).values()) list.push_back(one == kNone ? nullptr : e.values[one].get());
      v.u.tensors = list.data();
    } else if (a.is_draw()) {
      const Dim offset = *reinterpret_cast<const Dim*>(&a.plain.u.i);
      states_.push_back(e.draws[a.draw()]);
      states_.back().counter += static_cast<uint64_t>(e.graph.sizes.evaluate(offset, e.symbols));
      v.count = 0;
      v.u.g = &states_.back();
    } else if (a.is_graph()) {
      v = backplane::value(*e.functions[a.graph()]);
    } else if (a.is_symbolic()) {
      v = evaluated(e.graph, a, e.symbols, ints_);
    }
  }
}

void rethrow_with_node(const Graph& graph, NodeId node) {
  try {
    throw;
  } catch (const Error& error) {
    // The exception of a callback travels as it is.
    if (error.code() == BP_ERROR_PYTHON) throw;
    const Node& n = graph.node(node);
    std::string where = "\n  in graph " + graph.name + ", node %" + std::to_string(n.first_result);
    if (n.location < graph.locations().size()) {
      const Location& at = graph.locations()[n.location];
      where += " (" + at.file + ":" + std::to_string(at.line) + ")";
    }
    throw Error(error.code(), error.what() + where);
  }
}

namespace {

struct Calling {
  const Graph* graph;
  NodeId node;
};
constinit thread_local Calling calling{nullptr, kNone};

class CallOf {
 public:
  CallOf(const Graph& graph, NodeId node) : before_(std::exchange(calling, {&graph, node})) {}
  ~CallOf() { calling = before_; }
  CallOf(const CallOf&) = delete;

 private:
  const Calling before_;
};

}  // namespace

SourceLine line_of_call() {
  if (!calling.graph) return {};
  const uint32_t location = calling.graph->node(calling.node).location;
  if (location == kNone) return {};
  const Location& at = calling.graph->locations()[location];
  return {at.file, at.function, at.line};
}

void call_node(const Environment& e, NodeId id, Tensor* results) {
  const CallOf call_of(e.graph, id);
  const Node& node = e.graph.node(id);
  const NodeArguments arguments(e, node);
  const NumbersOn device(e.graph.device_of(node));
  bp_value outs[kMaxResults] = {};
  try {
    BP_CHECK(!node.op->withdrawn.load(std::memory_order_acquire), VALUE, node.op->record->name,
             ": the plugin that provided it was unloaded");
    call(*node.op, arguments.data(), arguments.size(), outs, node.op->n_results);
  } catch (...) {
    rethrow_with_node(e.graph, id);
  }
  uint32_t next = 0;
  std::vector<Tensor> made;
  for (int32_t i = 0; i < node.op->n_results; ++i) {
    if (outs[i].tag == BP_TAG_TENSOR_LIST) {
      for (Tensor& t : take_list(outs[i])) made.push_back(std::move(t));
    } else {
      made.push_back(Tensor::adopt(outs[i].u.t));
    }
  }
  BP_CHECK(made.size() == node.n_results, INTERNAL, "graph ", e.graph.name, ": ", node.op->record->name, " gave ",
           made.size(), " tensors, expected ", node.n_results);
  for (Tensor& t : made) results[next++] = std::move(t);
}

namespace {

// The node after which each value is no longer used; kNone for outputs and unused values.
std::vector<NodeId> last_uses(const Graph& graph) {
  std::vector<NodeId> last(graph.values().size(), kNone);
  for (NodeId id = 0; id < graph.nodes().size(); ++id)
    if (!graph.is_erased(id)) Graph::each_value(graph.arguments(graph.node(id)), [&](ValueId v) { last[v] = id; });
  for (const ValueId v : graph.outputs) last[v] = kNone;
  return last;
}

}  // namespace

std::vector<std::shared_ptr<GraphFunction>> functions_of(std::shared_ptr<const Graph> graph) {
  std::vector<std::shared_ptr<GraphFunction>> functions;
  for (const auto& inner : graph->graphs) functions.push_back(function_of(inner));
  return functions;
}

std::vector<Tensor> interpret(const Graph& graph, std::span<const Tensor> inputs, std::vector<int64_t> symbols,
                              std::span<const bp_generator_state> draws,
                              std::span<const std::shared_ptr<GraphFunction>> functions) {
  CallGuard guard;
  std::vector<Tensor> values(graph.values().size());
  for (size_t i = 0; i < inputs.size(); ++i) values[graph.inputs()[i].value] = inputs[i];
  for (const Constant& c : graph.constants()) values[c.value] = c.tensor;
  // Symbols whose number a result brings, by the node that makes it.
  std::vector<std::pair<NodeId, SymbolId>> found;
  for (SymbolId s = 0; s < graph.symbols().size(); ++s) {
    const ValueId v = graph.symbols()[s].value;
    if (v != kNone && graph.value(v).kind == Value::Kind::kResult) found.emplace_back(graph.value(v).node, s);
  }
  std::sort(found.begin(), found.end());
  const std::vector<NodeId> last = last_uses(graph);
  auto next = found.begin();
  for (NodeId id = 0; id < graph.nodes().size(); ++id) {
    if (graph.is_erased(id)) continue;
    const Node& node = graph.node(id);
    call_node({graph, values, symbols, draws, functions}, id, &values[node.first_result]);
    for (; next != found.end() && next->first == id; ++next) {
      const Symbol& s = graph.symbols()[next->second];
      symbols[next->second] = values[s.value].shape()[s.axis];
    }
    Graph::each_value(graph.arguments(node), [&](ValueId v) {
      if (last[v] == id) values[v] = Tensor();
    });
  }
  if (!found.empty()) graph.check(symbols);
  std::vector<Tensor> outputs;
  for (const ValueId v : graph.outputs) outputs.push_back(values[v]);
  return outputs;
}

}  // namespace backplane::core::graph
