// The order in which a plan with branches computes its nodes, found once, when the plan is made.
//
// A run by demand looks for missing inputs at every node. The steps are the same walk with jumps at the branches. A
// node that only some branches compute stands in each list of steps that may need it, and is computed by the first one.
// A plan for which the lists would be far longer than its nodes has none, and runs by demand.
#pragma once

#include "record/formula_plan.hpp"

namespace backplane::core {

// Fills plan.steps, one list per root with `each_root`. A straight plan with one list needs none.
void find_steps(bool each_root, FormulaPlan& plan);

}  // namespace backplane::core
