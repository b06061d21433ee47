// Products out of loops: a matrix product in the body of a scan that no step needs of the step before is one product
// of all steps' rows, before the scan or after it. Of many rows a product takes a fraction of the time for each, and
// threads share it.
//
//   before   of a slice that the scan goes through, and a matrix that stays as it is;
//   after    of what a step computes, and such a matrix, where the product is a result and nothing else reads it;
//   after    of two results of a step, summed over the steps, as the gradient of such a matrix is: one product whose
//            inner axis is the rows of all steps.
#pragma once

#include "graph/graph.hpp"

namespace backplane::core::graph {

// Returns how many products it moved. A scan whose sizes are not numbers stays, and so does a product whose rows of all
// steps would take more than 64 MiB. Linear.
size_t move_products_out_of_scans(Graph& graph);

}  // namespace backplane::core::graph
