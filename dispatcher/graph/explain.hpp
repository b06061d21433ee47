// Who runs which node of a plan, and how its memory lies, for people.
#pragma once

#include <string>

#include "graph/plan.hpp"

namespace backplane::core::graph {

std::string explain(const PlanData& plan);

}  // namespace backplane::core::graph
