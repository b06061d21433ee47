// A graph written down anew, node by node, with what somebody puts in the place of some: the calls are traced again, so
// that every op's rules are asked again.
#include "backplane/graph.hpp"

#include <algorithm>

#include "graph/graph_body.hpp"
#include "graph/interpret.hpp"
#include "memory/process/epoch.hpp"
#include "trace/trace_level.hpp"

namespace backplane {

using namespace core;

namespace {

class Edit {
 public:
  Edit(const graph::Graph& whole, const EditNode& edit, const std::function<SourceLine()>& where)
      : whole_(whole), edit_(edit), where_(where), values_(whole.values().size()) {}

  std::shared_ptr<graph::Graph> run(const std::shared_ptr<const graph::Graph>& shared) {
    TraceLevel level("edit", [this] { return line(); });
    for (const graph::Input& input : whole_.inputs())
      values_[input.value] = level.enter(graph::example_of_value(whole_, input.value), input.name);
    for (const graph::Constant& c : whole_.constants()) values_[c.value] = c.tensor;
    const std::vector<bp_generator_state> draws = level.random().take_draws(whole_);
    const std::vector<std::shared_ptr<GraphFunction>> functions = graph::functions_of(shared);
    for (graph::NodeId id = 0; id < whole_.nodes().size(); ++id) node(id, draws, functions);
    std::vector<Tensor> results;
    for (const graph::ValueId v : whole_.outputs) results.push_back(values_[v]);
    values_.clear();
    std::shared_ptr<graph::Graph> made = level.finish(results);
    BP_CHECK(made->updates.empty(), NOT_IMPLEMENTED, "edit: graph ", whole_.name,
             ": the replacement of a node changes a tensor in place. Fix: copy it first");
    take_updates(*made);
    BP_CHECK(made->draws.size() == whole_.draws.size(), NOT_IMPLEMENTED, "edit: graph ", whole_.name,
             ": the replacement of a node draws random numbers. Fix: make them an input of the graph");
    made->name = whole_.name;
    made->own_rules = whole_.own_rules;
    made->own_batch = whole_.own_batch;
    made->not_of_ops = whole_.not_of_ops;
    for (size_t i = 0; i < made->constants().size(); ++i)
      for (const graph::Constant& c : whole_.constants())
        if (c.tensor.get() == made->constants()[i].tensor.get()) made->rename_constant(i, c.name);
    return made;
  }

 private:
  // The last results belong to the updates. Inputs keep their places.
  void take_updates(graph::Graph& made) const {
    for (graph::Update update : whole_.updates) {
      const graph::Value& target = whole_.value(update.target);
      if (target.kind == graph::Value::Kind::kInput) {
        update.target = made.inputs()[target.index].value;
      } else {
        const graph::Constant& old = whole_.constants()[target.index];
        const auto known = std::find_if(made.constants().begin(), made.constants().end(),
                                        [&](const graph::Constant& c) { return c.tensor.get() == old.tensor.get(); });
        update.target =
            known != made.constants().end() ? known->value : made.add_constant(old.tensor, old.name, old.live);
      }
      made.updates.push_back(update);
    }
  }

  void node(graph::NodeId id, std::span<const bp_generator_state> draws,
            std::span<const std::shared_ptr<GraphFunction>> functions) {
    const graph::Node& node = whole_.node(id);
    std::vector<Tensor> inputs;
    graph::Graph::each_value(whole_.arguments(node), [&](graph::ValueId v) { inputs.push_back(values_[v]); });
    if (std::optional<std::vector<Tensor>> other = edit_(id, inputs)) return replace(id, std::move(*other));
    copies_ = true;
    graph::call_node({whole_, values_, {}, draws, functions}, id, &values_[node.first_result]);
    copies_ = false;
  }

  void replace(graph::NodeId id, std::vector<Tensor> other) {
    const graph::Node& node = whole_.node(id);
    BP_CHECK(other.size() == node.n_results, TYPE, "edit: node ", id, " (", node.op->record->name, ") has ",
             node.n_results, " results, found ", other.size(), " tensors as replacement");
    for (uint32_t i = 0; i < node.n_results; ++i) {
      BP_CHECK(other[i], TYPE, "edit: node ", id, " (", node.op->record->name,
               "): found an empty tensor as its replacement");
      values_[node.first_result + i] = std::move(other[i]);
    }
  }

  // A node that stays keeps its line.
  SourceLine line() const {
    if (copies_) return graph::line_of_call();
    return where_ ? where_() : SourceLine{};
  }

  const graph::Graph& whole_;
  const EditNode& edit_;
  const std::function<SourceLine()>& where_;
  std::vector<Tensor> values_;
  bool copies_ = false;
};

}  // namespace

Graph edit_graph(const Graph& graph, const EditNode& edit, const std::function<SourceLine()>& where) {
  BP_CHECK(graph, VALUE, "edit: found an empty graph, expected one that make_graph gave");
  BP_CHECK(!graph.is_dynamic(), NOT_IMPLEMENTED, "edit: graph ", graph.get()->name,
           ": has sizes that differ from call to call. Fix: edit its text and read that with parse_graph, or edit the "
           "function");
  CallGuard guard;
  return Graph(Edit(*graph.get(), edit, where).run(graph.get()), graph.options());
}

}  // namespace backplane
