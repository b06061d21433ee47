// Sums of parts: the gradient of a sliced, indexed or gathered tensor is a sum of tensors, each of them zero but for a
// part. Only the part is added to the sum so far, whose memory the plan gives on from one addition to the next; no
// tensor that is zero elsewhere is made.
#pragma once

#include "graph/graph.hpp"

namespace backplane::core::graph {

// How many sums it replaced. Equal to them but for the sign of zeros. Sizes that are not numbers stay as they are.
// Linear.
size_t add_parts_in_place(Graph& graph);
// The same of parts alone whose ops, once they are decomposed, are not known as such any more.
size_t add_composed_parts_in_place(Graph& graph);

}  // namespace backplane::core::graph
