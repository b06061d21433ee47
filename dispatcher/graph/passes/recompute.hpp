// Values computed again where they are next needed, in place of being kept until then: a step of training keeps what
// its backward half reads of the forward half all through the middle, and much of that is cheap.
#pragma once

#include <memory>
#include <optional>

#include "graph/graph.hpp"

namespace backplane::core::graph {

struct Recomputation {
  std::shared_ptr<const Graph> graph;
  uint64_t before = 0, after = 0;  // bytes of what lives between nodes, where they are the most
  size_t nodes = 0;                // that run once more
};

// Until `budget` bytes suffice, or nothing more is to be gained: the step at which most bytes live gives up values that
// it does not read, those first that cost least to compute again for each byte. Every value keeps its bits, and the
// marks of nodes that run again keep later passes from merging them. A graph whose sizes are not numbers stays
// unchanged. Near-linear in the nodes.
Recomputation recompute(std::shared_ptr<const Graph> graph, uint64_t budget);
inline Recomputation within_budget(std::shared_ptr<const Graph> graph, std::optional<uint64_t> budget) {
  return budget ? recompute(std::move(graph), *budget) : Recomputation{std::move(graph)};
}

}  // namespace backplane::core::graph
