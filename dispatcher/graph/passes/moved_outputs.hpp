// Which outputs of a graph its inputs lead to by ops that have a derivative there, whatever its value is. Forward mode
// goes through what no_grad computed, where reverse mode has a constant.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/graph.hpp"

namespace backplane::core::graph {

enum class MoveMode : uint8_t { kReverse, kForward };

// Per output: do no wanted inputs lead to it? What the tape says of the function's own results.
std::vector<bool> constant_outputs(const Graph& graph, const std::vector<bool>& wanted,
                                   MoveMode mode = MoveMode::kReverse);

// Per input: the outputs to which it leads, as GraphFunction::Forward has it. The tape gives no gradient for others,
// where the function's would have none.
std::vector<uint64_t> moved_outputs(const Graph& graph, MoveMode mode = MoveMode::kReverse);

}  // namespace backplane::core::graph
