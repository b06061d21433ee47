// Whether a graph is one that can run: every node has its op, uses values from before it, gives its op the arguments of
// the signature, and has results of the dtypes and sizes that the op's rules give.
//
// Sizes in symbols are tried with the symbols' examples. Throws Error(BP_ERROR_VALUE, or the rule's own code) with the
// node. Of an edited graph after `compact`.
#pragma once

#include "graph/graph.hpp"

namespace backplane::core::graph {

void verify(const Graph& graph);

}  // namespace backplane::core::graph
