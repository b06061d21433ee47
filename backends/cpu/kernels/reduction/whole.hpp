// The order in which the kernels reduce a tensor in one piece to one element: pieces that threads may share, which are
// halved down to leaves.
#pragma once

#include <cstdint>

#include "kernels/reduction/reducer.hpp"

namespace backplane::cpu {

// The accumulators of the leaves of n elements (loops/whole_reduction.hpp) become one, the first.
void fold_leaves(const Reducer& reducer, int64_t item, char* leaves, int64_t n);

}  // namespace backplane::cpu
