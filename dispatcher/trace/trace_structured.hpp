// Control flow in a trace: one node, whose bodies are graphs of their own.
#pragma once

#include "control/structured.hpp"
#include "graph/graph_body.hpp"

namespace backplane::core {

// The body's own graph, or a trace of it for arguments like these.
std::shared_ptr<const graph::GraphBody> graph_of(const Body& body, std::span<const Tensor> examples);

}  // namespace backplane::core
