// Runs a graph node by node through the call path: what a plan (plan.hpp) does not make ready ahead, and graphs under a
// transform or a tape, whose calls are recorded and intercepted like a program's.
#pragma once

#include "backplane/graph.hpp"
#include "backplane/graph_function.hpp"
#include "graph/graph.hpp"

namespace backplane::core::graph {

// What a node's arguments are made of in one run.
struct Environment {
  const Graph& graph;
  std::span<const Tensor> values;  // by ValueId
  std::span<const int64_t> symbols;
  std::span<const bp_generator_state> draws;                  // of Graph::draws
  std::span<const std::shared_ptr<GraphFunction>> functions;  // of Graph::graphs
};

// A node's arguments as a call takes them. Borrows from the environment, and lives as long as the call.
class NodeArguments {
 public:
  NodeArguments(const Environment& environment, const Node& node);
  NodeArguments(const NodeArguments&) = delete;
  const bp_value* data() const { return args_; }
  int32_t size() const { return n_args_; }

 private:
  bp_value args_[kMaxArgs];
  int32_t n_args_;
  std::vector<std::vector<bp_tensor*>> tensors_;
  std::deque<std::vector<int64_t>> ints_;
  std::vector<bp_generator_state> states_;
};

// The line of the node that this thread calls now; line 0: no call, or an unknown line.
SourceLine line_of_call();

// Calls the node's op; its results, with lists flattened, go to `results`. Throws Error with the node. Under a
// CallGuard of the caller.
void call_node(const Environment& environment, NodeId node, Tensor* results);

// The graphs within `graph` as functions. They hold it.
std::vector<std::shared_ptr<GraphFunction>> functions_of(std::shared_ptr<const Graph> graph);

// Of inputs whose shapes and dtypes fit, with the values of the symbols: those of results may be 0, and are found on
// the way.
std::vector<Tensor> interpret(const Graph& graph, std::span<const Tensor> inputs, std::vector<int64_t> symbols,
                              std::span<const bp_generator_state> draws,
                              std::span<const std::shared_ptr<GraphFunction>> functions);

// Appends to an error's text the node in which it arose; for a catch block.
[[noreturn]] void rethrow_with_node(const Graph& graph, NodeId node);

}  // namespace backplane::core::graph
