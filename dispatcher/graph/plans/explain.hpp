// Who runs which node of a plan, and how its memory lies, for people.
#pragma once

#include <string>
#include <vector>

#include "call/profile.hpp"
#include "graph/plans/plan.hpp"

namespace backplane::core::graph {

std::string explain(const PlanData& plan);

// Per step, for a profile.
std::vector<StepFacts> facts_of_steps(const PlanData& plan);

}  // namespace backplane::core::graph
