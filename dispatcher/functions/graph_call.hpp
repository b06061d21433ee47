// Ops that take a function (BP_OP_HIGHER_ORDER): how each level, and the tape under them, treats its call.
//
// Every level of the thread takes part, the innermost first, whether or not the arguments are its own: what the
// function uses from outside may be. A level hands a derived function to the levels below, which pushes the level
// again, with its serial, around the original; so the function runs once, at all of its levels. Where a gradient is
// wanted, nothing of the run is recorded but which tensors with a history it used, and one node stands for all of it
// (graph_node.cpp).
#pragma once

#include <span>
#include <vector>

#include "backplane/graph_function.hpp"
#include "levels/level.hpp"
#include "tape/captures.hpp"

namespace backplane::core {

using Args = std::span<const Tensor>;

// A call of a flagged op, from dispatch.
void call_higher_order(const Call& call);
// From the innermost level of the thread downwards.
std::vector<Tensor> call_graph(const OpEntry& op, GraphFunction& function, Args args);

}  // namespace backplane::core
