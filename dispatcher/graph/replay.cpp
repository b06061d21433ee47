#include "graph/replay.hpp"

#include <algorithm>

#include "backplane/graph_function.hpp"
#include "call/dispatch.hpp"
#include "levels/random_log.hpp"
#include "memory/device.hpp"
#include "memory/epoch.hpp"
#include "record/dtype_rules.hpp"
#include "record/owned_value.hpp"

namespace backplane::core::graph {

std::vector<bp_generator_state> reserve_draws(const Graph& graph, std::span<bp_generator_state* const> generators,
                                              std::span<const int64_t> symbols) {
  BP_CHECK(generators.size() == graph.generators.size(), VALUE, "graph ", graph.name, ": draws random numbers from ",
           graph.generators.size(), " generators, found ", generators.size());
  std::vector<bp_generator_state> states;
  states.reserve(graph.draws.size());
  for (const Draw& draw : graph.draws) {
    if (draw.kind == Draw::Kind::kFixed) {
      states.push_back(draw.state);
    } else if (draw.kind == Draw::Kind::kDerived) {
      bp_generator_state from = states.at(draw.from);
      from.counter += static_cast<uint64_t>(graph.sizes.evaluate(draw.offset, symbols));
      states.push_back(derived_generator(from, draw.stream));
    } else {
      const auto count = static_cast<uint64_t>(graph.sizes.evaluate(draw.count, symbols));
      states.push_back(reserve_random(*generators[draw.generator], count));
    }
  }
  return states;
}

std::vector<int64_t> check_inputs(const Graph& graph, std::span<const Tensor> inputs) {
  std::vector<Shape> shapes;
  for (const Tensor& input : inputs) shapes.push_back(input.shape());
  std::vector<int64_t> symbols = graph.bind(shapes);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Input& expected = graph.inputs()[i];
    const Type type = graph.type(expected.value);
    const bp_device device = inputs[i].device();
    BP_CHECK(inputs[i].dtype() == type.dtype, DTYPE, "graph ", graph.name, ": input ", expected.name, " is of dtype ",
             kDtypeNames[inputs[i].dtype()], ", expected ", kDtypeNames[type.dtype]);
    BP_CHECK(device.backend == type.device.backend && device.ordinal == type.device.ordinal, VALUE, "graph ",
             graph.name, ": input ", expected.name, " is on ", name_of(device_at(device)), ", expected ",
             name_of(device_at(type.device)));
  }
  graph.check(symbols);
  return symbols;
}

namespace {

// The values of one run, each kept until its last use.
class Run {
 public:
  Run(const Graph& graph, std::span<const Tensor> inputs, std::span<bp_generator_state* const> generators)
      : graph_(graph), symbols_(check_inputs(graph, inputs)), states_(reserve_draws(graph, generators, symbols_)) {
    values_.resize(graph.values().size());
    last_use_.assign(values_.size(), kNone);
    for (size_t i = 0; i < inputs.size(); ++i) values_[graph.inputs()[i].value] = inputs[i];
    for (const Constant& c : graph.constants()) values_[c.value] = c.tensor;
    for (NodeId id = 0; id < graph.nodes().size(); ++id)
      Graph::each_value(graph.arguments(graph.node(id)), [&](ValueId v) { last_use_[v] = id; });
    for (ValueId v : graph.outputs) last_use_[v] = kNone;
    for (SymbolId s = 0; s < graph.symbols().size(); ++s)
      if (const Symbol& symbol = graph.symbols()[s]; graph.value(symbol.value).kind == Value::Kind::kResult)
        measured_.emplace_back(graph.value(symbol.value).node, s);
    std::sort(measured_.begin(), measured_.end());
  }

  std::vector<Tensor> run() {
    for (NodeId id = 0; id < graph_.nodes().size(); ++id) {
      if (graph_.is_erased(id)) continue;
      run_node(id);
      measure(id);
      Graph::each_value(graph_.arguments(graph_.node(id)), [&](ValueId v) {
        if (last_use_[v] == id) values_[v] = {};
      });
    }
    std::vector<Tensor> results;
    for (ValueId v : graph_.outputs) results.push_back(values_[v]);
    return results;
  }

 private:
  void run_node(NodeId id) {
    const Node& node = graph_.node(id);
    const OpEntry& op = checked_entry(node.op->handle);
    lists_.clear();
    sizes_.clear();
    bp_value args[kMaxArgs];
    int32_t n = 0;
    for (const Argument& a : graph_.arguments(node)) args[n++] = value_of(a);
    bp_value outs[kMaxResults]{};
    call(op, args, n, outs, op.n_results);
    ValueId result = node.first_result;
    for (int32_t j = 0; j < op.n_results; ++j) {
      if (outs[j].tag == BP_TAG_TENSOR) {
        values_[result++] = Tensor::adopt(outs[j].u.t);
        continue;
      }
      for (Tensor& t : take_list(outs[j])) values_[result++] = std::move(t);
    }
  }

  void measure(NodeId id) {
    for (auto it = std::lower_bound(measured_.begin(), measured_.end(), std::pair{id, SymbolId{0}});
         it != measured_.end() && it->first == id; ++it) {
      const Symbol& symbol = graph_.symbols()[it->second];
      symbols_[it->second] = values_[symbol.value].shape()[symbol.axis];
    }
  }

  bp_value value_of(const Argument& a) {
    if (a.is_value()) return backplane::value(values_[a.value()]);
    bp_value v = a.plain;
    if (a.is_values()) {
      auto& list = lists_.emplace_back();
      for (ValueId id : a.values()) list.push_back(id == kNone ? nullptr : values_[id].get());
      v.u.tensors = list.data();
    } else if (a.is_draw()) {
      bp_generator_state& state = offset_states_.emplace_back(states_[a.draw()]);
      state.counter += static_cast<uint64_t>(graph_.sizes.evaluate(a.offset(), symbols_));
      v.count = 0;
      v.u.g = &state;
    } else if (a.is_symbolic()) {
      auto& numbers = sizes_.emplace_back();
      for (Dim dim : a.dims()) numbers.push_back(graph_.sizes.evaluate(dim, symbols_));
      v.flags &= static_cast<uint16_t>(~Argument::kSymbolic);
      if (a.plain.tag == BP_TAG_INT)
        v.u.i = numbers[0];
      else
        v.u.ints = numbers.data();
    }
    return v;
  }

  const Graph& graph_;
  std::vector<int64_t> symbols_;
  std::vector<bp_generator_state> states_;
  std::deque<bp_generator_state> offset_states_;
  std::vector<Tensor> values_;
  std::vector<NodeId> last_use_;
  std::vector<std::pair<NodeId, SymbolId>> measured_;
  // Of the node that runs.
  std::vector<std::vector<bp_tensor*>> lists_;
  std::vector<std::vector<int64_t>> sizes_;
};

}  // namespace

std::vector<Tensor> replay(const Graph& graph, std::span<const Tensor> inputs,
                           std::span<bp_generator_state* const> generators) {
  return Run(graph, inputs, generators).run();
}

}  // namespace backplane::core::graph
