// The rules that a function states, and what follows from them.
#pragma once

#include <memory>

#include "backplane/graph_function.hpp"

namespace backplane::core {

// The function, or where it has forward rules alone, one whose backward is the transpose of its jvp.
// Throws where it has neither, naming the transform.
std::shared_ptr<GraphFunction> with_backward(GraphFunction& function, const char* transform);
[[noreturn]] void throw_missing_rule(const GraphFunction& function, const char* transform, const char* rule);

}  // namespace backplane::core
