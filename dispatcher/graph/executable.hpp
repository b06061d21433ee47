// A graph made ready to run: the one door through which Python, the C++ runner and functions within graphs run graphs.
//
// A run checks its inputs against the graph's types and constraints, and then goes through the plan (plan.hpp) for
// their sizes; there is one for each of the latest few. Where a transform, a tape or a plugin's key wants to see the
// calls, or the sizes are not known ahead, it goes node by node (interpret.hpp). Any thread, any number at once.
#pragma once

#include <atomic>
#include <memory>

#include "backplane/graph_function.hpp"
#include "graph/graph.hpp"
#include "memory/lock.hpp"

namespace backplane::core::graph {

class Plan;  // plan.hpp

struct ExecutableOptions {
  std::vector<bool> donated;  // per input: a run may overwrite it; empty: none
  bool plans = true;          // false: always node by node
  bool regions = true;        // parts of the graph may go to the compilers of backends
};

class Executable {
 public:
  explicit Executable(std::shared_ptr<const Graph> graph, ExecutableOptions options = {});
  ~Executable();
  Executable(const Executable&) = delete;

  // Throws Error naming the input or the constraint. `draws`: a state for each of the graph's draws, whose counters the
  // caller has reserved.
  std::vector<Tensor> run(std::span<const Tensor> inputs, std::span<const bp_generator_state> draws = {});

  const Graph& graph() const { return *graph_; }
  // Counters that each draw takes for inputs of these shapes: what the caller reserves.
  std::vector<uint64_t> draw_counts(std::span<const Tensor> inputs) const;
  // Who runs which node, and how the memory is laid out, for inputs of these sizes.
  std::string explain(std::span<const Tensor> inputs);
  size_t plan_count();

 private:
  void check_inputs(std::span<const Tensor> inputs) const;
  std::vector<int64_t> bind(std::span<const Tensor> inputs) const;
  std::shared_ptr<Plan> plan_for(std::span<const Tensor> inputs);
  bool sizes_known() const;

  std::shared_ptr<const Graph> graph_;
  ExecutableOptions options_;
  std::vector<std::shared_ptr<GraphFunction>> functions_;
  bool plannable_;
  Lock lock_;
  std::vector<std::shared_ptr<Plan>> plans_;  // the latest used first
};

}  // namespace backplane::core::graph
