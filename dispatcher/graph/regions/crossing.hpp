// A graph, or a part of one, in the form in which it crosses to a backend's compiler (backplane/abi/graph.h).
#pragma once

#include <deque>
#include <unordered_map>

#include "backplane/abi/graph.h"
#include "graph/graph.hpp"
#include "record/resolved_args.hpp"

namespace backplane::core::graph {

// Which of an op's faults a call in a compute dtype may meet: divisors and exponents are refused in integer dtypes
// only. BP_DTYPE_NONE: the dtype is not known.
uint64_t faults_in(uint64_t faults, bp_dtype compute);

class CrossingGraph {
 public:
  // The nodes in an order in which they run; what others read of them. Its inputs are what the nodes read and do not
  // make, constants that may change among them. Sizes are numbers, by the symbols' values. Throws Error.
  CrossingGraph(const Graph& graph, std::span<const int64_t> symbols, std::span<const NodeId> nodes,
                std::span<const ValueId> outputs);
  CrossingGraph(const CrossingGraph&) = delete;

  const bp_graph& get() const { return crossing_; }
  const std::vector<ValueId>& inputs() const { return input_values_; }
  // The memory of constants whose contents it shows: they hold them by now.
  const std::vector<bp_storage*>& constants() const { return constants_; }

 private:
  uint32_t number(ValueId value);
  void show_constant(bp_graph_value& value, const Tensor& tensor);
  bool resolve(const Node& node, std::vector<bp_value>& args, bp_dtype& compute);
  void add_node(NodeId id);
  bp_value argument(const Argument& a);
  void by_reference(const Argument& a, bp_value& v);
  std::span<const int64_t> sizes(std::span<const Dim> dims);

  const Graph& graph_;
  std::span<const int64_t> symbols_;
  bp_graph crossing_{};
  std::unordered_map<ValueId, uint32_t> numbers_;
  std::vector<Tensor> handles_;  // by number: shape and dtype alone
  std::vector<bp_graph_value> values_;
  std::vector<bp_graph_node> nodes_;
  std::vector<ValueId> input_values_;
  std::vector<uint32_t> inputs_, outputs_;
  std::vector<bp_storage*> constants_;
  std::deque<std::vector<int64_t>> ints_;
  std::deque<std::vector<bp_value>> args_;
  std::deque<std::vector<uint32_t>> results_;
  std::deque<std::vector<bp_tensor*>> lists_;
  std::deque<ResolvedLists> resolved_;
  std::deque<std::string> sources_;
};

}  // namespace backplane::core::graph
