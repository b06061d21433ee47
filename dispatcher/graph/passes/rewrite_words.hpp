// The vocabulary of rewrites beside ops: conditions on the arguments that a pattern has found, and arguments made of
// others. Pure.
#pragma once

#include <span>

#include "graph/graph.hpp"
#include "graph/passes/rewrite_rules.hpp"

namespace backplane::core::graph {

// The same number, 0.0 and -0.0 apart.
bool is_the_number(const Argument& a, double wanted);

bool holds(const Graph& graph, RewriteWord word, std::span<const Argument> of);
// ABSENT where it cannot be made: then the rule does not apply.
Argument make_argument(Graph& graph, RewriteWord word, std::span<const Argument> of);

}  // namespace backplane::core::graph
