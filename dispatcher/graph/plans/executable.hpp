// A graph made ready to run: the one door through which Python, the C++ runner and functions within graphs run graphs.
//
// A run checks its inputs against the graph's types and constraints, and then goes through the plan (plan.hpp) for
// their sizes; there is one for each of the latest few. A graph whose sizes are expressions is made one of numbers
// first (sizes.hpp), so passes and plans see nothing else. Where a transform, a tape or a plugin's key wants to see the
// calls, or a size depends on values, a run goes node by node (interpret.hpp). Any thread, any number at once.
#pragma once

#include <atomic>
#include <memory>

#include "backplane/graph.hpp"
#include "graph/plans/plan.hpp"
#include "graph/updates.hpp"

namespace backplane::core::graph {

struct ExecutableOptions : GraphOptions {
  bool plans = true;      // false: always node by node
  bool compilers = true;  // parts of the graph may go to those of backends
};

class Executable {
 public:
  explicit Executable(std::shared_ptr<const Graph> graph, ExecutableOptions options = {});
  ~Executable();
  Executable(const Executable&) = delete;

  // Throws Error naming the input or the constraint. `draws`: a state for each of the graph's draws, whose counters the
  // caller has reserved.
  std::vector<Tensor> run(std::span<const Tensor> inputs, std::span<const bp_generator_state> draws = {}) {
    return run(inputs, draws, false);
  }

  // The same, but carries out the graph's updates, and returns only the other results.
  std::vector<Tensor> run_and_update(std::span<const Tensor> inputs, std::span<const bp_generator_state> draws = {});

  const Graph& graph() const { return *graph_; }
  const Updates& updates() const { return updates_; }
  const std::shared_ptr<const Graph>& shared_graph() const { return graph_; }
  const GraphOptions& options() const { return options_; }
  // Counters that each draw takes for inputs of these shapes: what the caller reserves.
  std::vector<uint64_t> draw_counts(std::span<const Tensor> inputs) const;
  // Of the plan for inputs of these sizes; all 0 where a run goes node by node.
  PlanSummary summary(std::span<const Tensor> inputs);
  // explain.hpp, of that plan.
  std::string explain_run(std::span<const Tensor> inputs);
  size_t plan_count() const;
  // The graph with numbers for sizes, for inputs like these; nullptr where its sizes are numbers. Of inputs that the
  // graph does not take it throws as `run` does.
  std::shared_ptr<Executable> at_sizes_of(std::span<const Tensor> inputs);

 private:
  void check_inputs(std::span<const Tensor> inputs) const;
  std::vector<Tensor> run(std::span<const Tensor> inputs, std::span<const bp_generator_state> draws, bool updates);
  std::vector<int64_t> bind(std::span<const Tensor> inputs) const;
  std::shared_ptr<Plan> plan_for(std::span<const Tensor> inputs);
  std::shared_ptr<Executable> at_symbols(std::vector<int64_t> symbols);
  // What plans run: the graph after the passes, and the functions in it.
  struct Optimized {
    std::shared_ptr<const Graph> graph;
    std::vector<std::shared_ptr<GraphFunction>> functions;
    std::vector<PlanData::MadeFor> made_for;  // of constants, folded ones among them
  };
  std::shared_ptr<const Optimized> optimized();
  std::unique_ptr<PlanData> build_within_budget(const std::vector<int64_t>& symbols, std::span<const Tensor> inputs);

  std::shared_ptr<const Graph> graph_;
  Updates updates_;
  ExecutableOptions options_;
  std::vector<std::shared_ptr<GraphFunction>> functions_;
  bool sized_by_inputs_;  // its symbols are numbers once the inputs are there
  bool plannable_;
  using Plans = std::vector<std::shared_ptr<Plan>>;          // the latest made first
  std::atomic<std::shared_ptr<const Optimized>> optimized_;  // made with the first plan, then kept
  std::atomic<std::shared_ptr<const Plans>> plans_;
  struct Specialized {
    std::vector<int64_t> symbols;
    std::shared_ptr<Executable> executable;
  };
  using Specializations = std::vector<Specialized>;  // the latest made first
  std::atomic<std::shared_ptr<const Specializations>> specialized_;
};

}  // namespace backplane::core::graph
