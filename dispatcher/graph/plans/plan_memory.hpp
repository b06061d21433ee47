// Where the values of a plan's steps live: which get tensors of their own at run time, and where in an arena the others
// lie.
#pragma once

#include "graph/plans/plan.hpp"

namespace backplane::core::graph {

// `visible`, per value: the dispatcher or the caller sees its tensor. Fills in blocks, arenas, and the values made and
// dropped at each step.
void lay_out_memory(PlanData& plan, const std::vector<bool>& visible, const std::vector<bool>& donated);

}  // namespace backplane::core::graph
