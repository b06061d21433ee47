// A graph as a picture: text for Graphviz, coloured by the backend or the cost of each node.
#pragma once

#include <string>

#include "backplane/graph_picture.hpp"
#include "graph/plans/plan.hpp"

namespace backplane::core::graph {

// Of a plan's graph, whose regions are boxes around their nodes. Labels hold ops, their attributes and types, and what
// a node costs (graph/cost.hpp).
std::string picture(const PlanData& plan, GraphColors colors);

}  // namespace backplane::core::graph
