// What the nodes of a graph cost: operations on elements, and bytes.
//
// A primitive's operations follow from its family; those of any other op are its decomposition's. They are estimates by
// which nodes compare, the same on every backend: a kernel of its own may take fewer.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.hpp"

namespace backplane::core::graph {

struct NodeCost {
  // One per computed element, two per term of a product; empty if the family and the decomposition do not
  // determine it: ops of the host's libraries, with functions, and of shapes that depend on values.
  std::optional<uint64_t> flops;
  uint64_t bytes = 0;  // read and written; of a view none
};

// "2.1 MFLOP, 3.0 MiB"; "" of what costs nothing.
std::string text_of(const NodeCost& cost);

// Per node, for these values of the symbols. Of an erased node nothing.
std::vector<NodeCost> costs(const Graph& graph, std::span<const int64_t> symbols);

}  // namespace backplane::core::graph
