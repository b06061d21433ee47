// Layout before products: an elementwise op of transposed tensors that only products read is computed of the tensors as
// they lie, and its result transposed, which is a view. A product reads either layout alike; the op would walk through
// memory across the rows.
#pragma once

#include "graph/graph.hpp"

namespace backplane::core::graph {

// How many nodes it turned. Linear.
size_t sink_transposes(Graph& graph);

}  // namespace backplane::core::graph
