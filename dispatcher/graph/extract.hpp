// A part of a graph as a graph of its own.
#pragma once

#include <memory>
#include <span>

#include "graph/graph.hpp"

namespace backplane::core::graph {

// From `inputs` to `outputs`, values of `whole`: the nodes between them, in their order. An input may be any value, but
// each only once; other constants are copied too, and so are all draws. An input that a wanted output does not
// need stays an input. Throws where the outputs need an input of `whole` that is not among `inputs`, or where a size is
// no number.
std::shared_ptr<Graph> extract(const Graph& whole, std::span<const ValueId> inputs, std::span<const ValueId> outputs);

}  // namespace backplane::core::graph
