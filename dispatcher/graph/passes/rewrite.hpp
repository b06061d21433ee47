// Algebraic rules: what a table of patterns (ops/rewrites.yaml) says may stand in place of what.
#pragma once

#include <span>
#include <string_view>

#include "graph/graph.hpp"
#include "graph/passes/rewrite_rules.hpp"

namespace backplane::core::graph {

// Applies rules, front to back, until none applies. Returns how many were applied. A result that is a separate tensor
// for the caller stays one: it does not become an argument or another result. In time that grows with the nodes alone.
size_t rewrite(Graph& graph);

// The table, for tests and reports.
std::span<const RewriteRule> rewrite_rules();
const PatternNode& pattern_node(uint16_t index);
std::span<const uint16_t> pattern_inputs(const PatternNode& node);

}  // namespace backplane::core::graph
