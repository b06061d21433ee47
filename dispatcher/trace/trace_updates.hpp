// What a traced function does to tensors beside giving results, where nothing may come of it.
#pragma once

#include <string_view>

#include "graph/graph.hpp"

namespace backplane::core {

// Of a function of control flow. Throws where it changes an argument or a tensor from outside, naming that.
void check_no_updates(const graph::Graph& graph, std::string_view who);

}  // namespace backplane::core
