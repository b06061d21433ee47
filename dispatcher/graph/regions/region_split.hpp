// Regions that wait: a region runs once all its operands exist, and early operands live until then. A sum of
// products, one from each step of a loop, would hold all of them. Such a region is split where its first part would
// free clearly more memory than it hands on.
#pragma once

#include <span>
#include <vector>

#include "graph/graph.hpp"

namespace backplane::core::graph {

class RegionSplit {
 public:
  // `runs_at`, per node: the place in the order of nodes at which it runs; for a node of a region, the place of its
  // last node.
  RegionSplit(const Graph& graph, std::span<const int64_t> symbols, std::vector<NodeId> runs_at);
  // The parts of a region, each in the order of its nodes; one part alone: it stays whole.
  std::vector<std::vector<NodeId>> parts(std::span<const NodeId> region);

 private:
  uint64_t bytes_of(ValueId value) const;

  const Graph& graph_;
  std::span<const int64_t> symbols_;
  std::vector<NodeId> runs_at_;
  std::vector<uint32_t> uses_;  // by value; an output of the graph is one that never comes
};

}  // namespace backplane::core::graph
