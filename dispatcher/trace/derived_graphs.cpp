#include "trace/derived_graphs.hpp"

#include "backplane/graph.hpp"
#include "backplane/transforms.hpp"
#include "graph/extract.hpp"
#include "graph/graph_body.hpp"
#include "graph/interpret.hpp"
#include "graph/passes/dead_code.hpp"
#include "graph/passes/moved_outputs.hpp"
#include "graph/passes/optimize.hpp"
#include "graph/passes/recompute.hpp"
#include "graph/plans/draws.hpp"
#include "memory/process/epoch.hpp"
#include "tape/node.hpp"
#include "trace/trace_level.hpp"

namespace backplane::core {
namespace {

using graph::ValueId;

constexpr size_t kKept = 8;

std::vector<size_t> places_of(const std::vector<bool>& flags) {
  std::vector<size_t> places;
  for (size_t i = 0; i < flags.size(); ++i)
    if (flags[i]) places.push_back(i);
  return places;
}

Tensors with(Args args, const std::vector<size_t>& places, Args some) {
  Tensors all(args.begin(), args.end());
  for (size_t k = 0; k < places.size(); ++k) all[places[k]] = some[k];
  return all;
}

}  // namespace

DerivedGraphs::DerivedGraphs(std::shared_ptr<const graph::Graph> graph, std::optional<uint64_t> memory_budget)
    : executable_(std::move(graph), {{.donated = {}, .memory_budget = memory_budget}}) {
  for (const ValueId v : this->graph().outputs) results_.push_back(graph::example_of_value(this->graph(), v));
}

template <class Key, class Made>
template <class Make>
std::shared_ptr<Made> DerivedGraphs::Cache<Key, Made>::get(const Key& key, Make make) {
  const std::shared_ptr<const List> known = list.load(std::memory_order_acquire);
  if (known)
    for (const auto& [of, made] : *known)
      if (of == key) return made;
  std::shared_ptr<Made> made = make();
  auto longer = std::make_shared<List>();
  longer->emplace_back(key, made);
  if (known)
    longer->insert(longer->end(), known->begin(),
                   known->begin() + static_cast<ptrdiff_t>(std::min(known->size(), kKept - 1)));
  list.store(std::move(longer), std::memory_order_release);
  return made;
}

Tensors DerivedGraphs::input_examples() const {
  Tensors examples;
  for (const graph::Input& input : graph().inputs()) examples.push_back(graph::example_of_value(graph(), input.value));
  return examples;
}

// It has the draws of this graph, so both take the same states.
std::shared_ptr<graph::Graph> DerivedGraphs::trace(const char* transform, Args examples, const Traced& function) const {
  CallGuard guard;
  TraceLevel level(transform, graph::line_of_call);
  Tensors entered;
  for (size_t i = 0; i < examples.size(); ++i) entered.push_back(level.enter(examples[i], "x" + std::to_string(i)));
  const DrawStates states = level.random().take_draws(graph());
  auto traced = level.finish(function(entered, states));
  traced->name = graph().name;
  return traced;
}

// ---- reverse mode ----------------------------------------------------------------------------------------------

std::shared_ptr<const DerivedGraphs::Reverse> DerivedGraphs::reverse(const std::vector<bool>& wanted) {
  return reverse_.get(wanted, [&] {
    std::vector<std::string> refusals(results_.size());
    const auto refuses = [&](const std::vector<size_t>& of_results, Reverse* made) {
      try {
        *made = derive_reverse(wanted, of_results);
        return false;
      } catch (const Error& error) {
        if (error.code() != BP_ERROR_NOT_IMPLEMENTED) throw;
        for (const size_t j : of_results) refusals[j] = error.what();
        return true;
      }
    };
    const std::vector<size_t> inexact = inexact_of(results_);
    Reverse made;
    if (refuses(inexact, &made)) {
      std::fill(refusals.begin(), refusals.end(), "");
      std::vector<size_t> of_results;
      for (const size_t j : inexact)
        if (!refuses({j}, &made)) of_results.push_back(j);
      made = derive_reverse(wanted, of_results);
    }
    made.refusals = std::move(refusals);
    return std::make_shared<const Reverse>(std::move(made));
  });
}

// Of the cotangents of these results.
DerivedGraphs::Reverse DerivedGraphs::derive_reverse(const std::vector<bool>& wanted,
                                                     const std::vector<size_t>& inexact) {
  const std::vector<size_t> from = places_of(wanted);
  const Tensors inputs = input_examples();
  const size_t n = inputs.size(), n_results = results_.size();
  const auto traced =
      trace("grad", joined({inputs, picked(results_, inexact)}), [&](Args all, const DrawStates& states) {
        const Args args = all.first(n);
        const auto of_wanted = [&](Args some) { return run(with(args, from, some), states); };
        const ValuesAndPullback both = vjp(of_wanted, picked(args, from));
        Tensors cotangents(n_results);
        for (size_t k = 0; k < inexact.size(); ++k) cotangents[inexact[k]] = all[n + k];
        return joined({both.values, both.pullback(cotangents, false)});
      });
  const std::optional<uint64_t> budget = executable_.options().memory_budget;
  const std::shared_ptr<const graph::Graph> joint =
      graph::within_budget(graph::optimize_whole_ops(*traced), budget).graph;
  const std::span<const ValueId> outputs = joint->outputs, results = outputs.first(n_results);
  const std::vector<bool> forward = graph::needed_nodes(*joint, results);

  // What the rest uses: arguments, values of the forward pass, cotangents.
  std::vector<bool> used(joint->values().size(), false);
  for (graph::NodeId id = 0; id < joint->nodes().size(); ++id)
    if (!forward[id]) graph::Graph::each_value(joint->arguments(joint->node(id)), [&](ValueId v) { used[v] = true; });
  for (const ValueId v : outputs.subspan(n_results)) used[v] = true;
  Reverse made;
  made.constant = graph::constant_outputs(graph(), wanted);
  made.moves = graph::moved_outputs(graph());
  std::vector<ValueId> arguments, forward_outputs(results.begin(), results.end()), backward_inputs;
  for (size_t i = 0; i < n; ++i) {
    arguments.push_back(joint->inputs()[i].value);
    if (!used[arguments[i]]) continue;
    made.arguments.push_back(i);
    backward_inputs.push_back(arguments[i]);
  }
  for (ValueId v = 0; v < used.size(); ++v) {
    const graph::Value& value = joint->value(v);
    if (!used[v] || value.kind != graph::Value::Kind::kResult || !forward[value.node]) continue;
    forward_outputs.push_back(v);
    backward_inputs.push_back(v);
  }
  for (size_t k = 0; k < inexact.size(); ++k) {
    const ValueId v = joint->inputs()[n + k].value;
    if (!used[v]) continue;
    made.cotangents.push_back(inexact[k]);
    backward_inputs.push_back(v);
  }
  made.forward = std::make_shared<DerivedGraphs>(graph::extract(*joint, arguments, forward_outputs), budget);
  made.backward =
      std::make_shared<DerivedGraphs>(graph::extract(*joint, backward_inputs, outputs.subspan(n_results)), budget);
  return made;
}

// ---- forward mode, batches -------------------------------------------------------------------------------------

std::shared_ptr<DerivedGraphs> DerivedGraphs::linear_in(const std::vector<bool>& given) {
  return linear_.get(given, [&] {
    const std::vector<size_t> places = places_of(given);
    const Tensors inputs = input_examples();
    const size_t n = inputs.size() - given.size();
    const Tensors linear(inputs.begin() + static_cast<ptrdiff_t>(n), inputs.end());
    const auto traced = [&](bool sparse) {
      const auto function = [&](Args all, const DrawStates& states) {
        const Tensors zeros = filled_up(Tensors(linear.size()), linear);
        const auto of_given = [&](Args some) { return run(joined({all.first(n), with(zeros, places, some)}), states); };
        if (!sparse) return of_given(all.subspan(n));
        return backplane::jvp(of_given, picked(zeros, places), all.subspan(n)).tangents;
      };
      return trace("grad", joined({Args(inputs).first(n), picked(linear, places)}), function);
    };
    std::shared_ptr<graph::Graph> made;
    try {
      made = traced(true);
    } catch (const Error& error) {
      if (error.code() != BP_ERROR_NOT_IMPLEMENTED) throw;
      made = traced(false);
    }
    return std::make_shared<DerivedGraphs>(std::move(made), executable_.options().memory_budget);
  });
}

std::shared_ptr<const DerivedGraphs::ForwardMode> DerivedGraphs::forward_mode(const std::vector<bool>& moving) {
  return forward_mode_.get(moving, [&] {
    const std::vector<size_t> from = places_of(moving);
    const Tensors inputs = input_examples();
    std::vector<bool> moved = graph::constant_outputs(graph(), moving, graph::MoveMode::kForward);
    moved.flip();
    const std::vector<size_t> tangents = inexact_of(results_, moved);
    auto made = std::make_shared<DerivedGraphs>(
        trace("jvp", joined({inputs, picked(inputs, from)}),
              [&](Args all, const DrawStates& states) {
                const Args args = all.first(inputs.size());
                const auto of_moving = [&](Args some) { return run(with(args, from, some), states); };
                const ValuesAndTangents both =
                    backplane::jvp(of_moving, picked(args, from), all.subspan(inputs.size()));
                return joined({both.values, picked(both.tangents, tangents)});
              }),
        executable_.options().memory_budget);
    return std::make_shared<const ForwardMode>(ForwardMode{std::move(made), tangents});
  });
}

std::shared_ptr<DerivedGraphs> DerivedGraphs::batched(int64_t size, const std::vector<bool>& batched) {
  return batched_.get({size, batched}, [&] {
    Tensors rows = input_examples();
    for (size_t i = 0; i < rows.size(); ++i) {
      if (!batched[i]) continue;
      std::vector<int64_t> shape{size};
      shape.insert(shape.end(), rows[i].shape().begin(), rows[i].shape().end());
      rows[i] = example_of(shape, rows[i]);
    }
    return std::make_shared<DerivedGraphs>(trace("vmap", rows,
                                                 [&](Args all, const DrawStates& states) {
                                                   BatchScope scope(size, Randomness::kError, "vmap");
                                                   Tensors args;
                                                   for (size_t i = 0; i < all.size(); ++i)
                                                     args.push_back(batched[i] ? scope.enter(all[i], 0) : all[i]);
                                                   Tensors results = run(args, states);
                                                   for (Tensor& t : results) t = scope.leave(t, 0);
                                                   return results;
                                                 }),
                                           executable_.options().memory_budget);
  });
}

std::shared_ptr<const DerivedGraphs::Unmoved> DerivedGraphs::unmoved(const std::vector<bool>& followed,
                                                                     std::span<const size_t> of) {
  return unmoved_.get(followed, [&] {
    const graph::Graph& whole = graph();
    std::vector<bool> moves(whole.values().size(), false);
    std::vector<graph::ValueId> inputs, outputs;
    auto made = std::make_shared<Unmoved>();
    for (size_t i = 0; i < followed.size(); ++i) {
      moves[whole.inputs()[i].value] = followed[i];
      if (followed[i]) continue;
      inputs.push_back(whole.inputs()[i].value);
      made->arguments.push_back(i);
    }
    for (const graph::Node& node : whole.nodes()) {
      bool is_moved = false;
      graph::Graph::each_value(whole.arguments(node), [&](graph::ValueId v) { is_moved = is_moved || moves[v]; });
      for (uint32_t k = 0; k < node.n_results; ++k) moves[node.first_result + k] = is_moved;
    }
    for (const size_t k : of) {
      if (moves[whole.outputs[k]]) continue;
      made->results.push_back(k);
      outputs.push_back(whole.outputs[k]);
    }
    if (!outputs.empty())
      made->graph =
          std::make_shared<DerivedGraphs>(graph::extract(whole, inputs, outputs), executable_.options().memory_budget);
    return std::shared_ptr<const Unmoved>(std::move(made));
  });
}

// ---- a call ----------------------------------------------------------------------------------------------------

namespace {

// One call's: its random numbers, and which arguments somebody may differentiate.
class GraphCall final : public ClosedFunction {
 public:
  GraphCall(std::shared_ptr<DerivedGraphs> graphs, std::shared_ptr<const DrawStates> states, std::vector<bool> wanted)
      : ClosedFunction(graphs->graph().name),
        graphs_(std::move(graphs)),
        states_(std::move(states)),
        wanted_(std::move(wanted)) {}

  // A batch of random numbers is what the level's rule for each op says.
  bool has(Rule rule) const noexcept override { return rule != Rule::kBatch || states_->empty(); }
  Tensors call(Args args) override { return graphs_->run(args, *states_); }

  // A result may have no derivative that anybody asks for, so what cannot be derived is an error of the backward pass.
  Forward forward(Args args) override {
    auto rest = std::make_shared<Rest>();
    try {
      rest->reverse = graphs_->reverse(wanted_);
    } catch (const Error& error) {
      if (error.code() != BP_ERROR_NOT_IMPLEMENTED) throw;
      rest->refusal = error.what();
      return {call_derived(graphs_, args, states_), {{}, std::move(rest)}};
    }
    const DerivedGraphs::Reverse& reverse = *rest->reverse;
    Tensors results = call_derived(reverse.forward, args, states_);
    const auto end = results.begin() + static_cast<ptrdiff_t>(graphs_->result_examples().size());
    Tensors residuals = joined({picked(args, reverse.arguments), {end, results.end()}});
    results.erase(end, results.end());
    return {std::move(results), {std::move(residuals), std::move(rest)}, reverse.constant, reverse.moves};
  }

  Tensors backward(const Residuals& residuals, Args cotangents) override {
    const Rest& rest = *static_cast<const Rest*>(residuals.rest.get());
    BP_CHECK(rest.reverse, NOT_IMPLEMENTED, rest.refusal);
    for (size_t j = 0; j < cotangents.size(); ++j)
      BP_CHECK(!cotangents[j] || rest.reverse->refusals[j].empty(), NOT_IMPLEMENTED, rest.reverse->refusals[j]);
    Tensors all(wanted_.size());
    const Tensors g = picked(cotangents, rest.reverse->cotangents);
    const std::vector<bool> given = present_of(g);
    const std::vector<size_t> places = places_of(given);
    if (places.empty()) return all;
    const auto backward = places.size() == g.size() ? rest.reverse->backward : rest.reverse->backward->linear_in(given);
    const Tensors found = call_derived(backward, joined({residuals.tensors, picked(g, places)}), states_);
    size_t next = 0;
    for (const size_t i : places_of(wanted_)) all[i] = found[next++];
    return all;
  }

  Duals jvp(Args primals, Args tangents) override {
    std::vector<bool> moving = wanted_;
    for (size_t i = 0; i < moving.size(); ++i) moving[i] = moving[i] && tangents[i];
    const auto forward_mode = graphs_->forward_mode(moving);
    const Tensors found =
        call_derived(forward_mode->graph, joined({primals, picked(tangents, places_of(moving))}), states_);
    const size_t n = graphs_->result_examples().size();
    Duals duals{{found.begin(), found.begin() + static_cast<ptrdiff_t>(n)}, Tensors(n)};
    size_t next = n;
    for (const size_t j : forward_mode->tangents) duals.tangents[j] = found[next++];
    return duals;
  }

  Batched batch(int64_t size, const std::vector<bool>& batched, Args args) override {
    Tensors results = call_derived(graphs_->batched(size, batched), args, states_);
    std::vector<bool> all(results.size(), true);
    return {std::move(results), std::move(all)};
  }

 private:
  struct Rest {
    std::shared_ptr<const DerivedGraphs::Reverse> reverse;
    std::string refusal;  // where there is none
  };
  std::shared_ptr<DerivedGraphs> graphs_;
  std::shared_ptr<const DrawStates> states_;
  std::vector<bool> wanted_;
};

}  // namespace

Tensors call_derived(const std::shared_ptr<DerivedGraphs>& graphs, Args args,
                     const std::shared_ptr<const DrawStates>& states) {
  std::vector<bool> wanted;
  for (const Tensor& t : args) wanted.push_back(is_inexact(t.dtype()) && (impl(t)->wrapper || wants_grad(impl(t))));
  const auto call = std::make_shared<GraphCall>(graphs, states, std::move(wanted));
  return call_graph(tagged_op("role:custom_function"), *call, args);
}

}  // namespace backplane::core
