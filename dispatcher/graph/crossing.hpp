// A graph as it crosses to a backend's compiler (abi/graph.h), for sizes that are known.
//
// Owns what the crossing graph points to; borrows the graph.
#pragma once

#include <deque>
#include <span>
#include <vector>

#include "backplane/abi/graph.h"
#include "graph/graph.hpp"
#include "record/resolved_args.hpp"

namespace backplane::core::graph {

class Crossing {
 public:
  // Starts the devices of the graph's values.
  Crossing(const Graph& graph, std::span<const int64_t> symbols);
  Crossing(const Crossing&) = delete;

  // These nodes, in this order. Holds until the next call.
  const bp_graph* of(std::span<const NodeId> nodes, std::span<const ValueId> inputs, std::span<const ValueId> outputs);

 private:
  void add_values(std::span<const int64_t> symbols);
  void add_node(NodeId id, std::span<const int64_t> symbols);
  // As a kernel of this minor would receive them, with handles for tensors; false: no compiler is to take the call.
  bool resolve(const Node& node, std::vector<bp_value>& args, bp_dtype& compute);
  bp_value crossing_argument(const bp_value& arg, const Argument& from);

  const Graph& graph_;
  std::vector<Tensor> handles_;  // per value, without storage
  std::vector<bp_graph_value> values_;
  std::vector<bp_graph_node> nodes_;  // of all nodes
  std::vector<uint32_t> results_;     // each value's own number
  std::deque<std::vector<bp_value>> args_;
  std::deque<std::vector<int64_t>> ints_;
  std::deque<std::vector<bp_tensor*>> lists_;
  std::deque<ResolvedLists> resolved_;
  std::vector<bp_graph_node> chosen_;
  std::vector<uint32_t> inputs_, outputs_;
  bp_graph crossing_{};
};

}  // namespace backplane::core::graph
