// Whether a graph is one that can run: every node knows its op, finds what it uses before it, gives its op what the
// signature asks for, and has results of the dtypes and sizes that the op's rules give.
//
// Sizes in symbols are tried with the symbols' examples. Throws Error(BP_ERROR_VALUE, or the rule's own code) with the
// node. Of an edited graph after `compact`.
#pragma once

#include "graph/graph.hpp"

namespace backplane::core::graph {

void verify(const Graph& graph);

}  // namespace backplane::core::graph
