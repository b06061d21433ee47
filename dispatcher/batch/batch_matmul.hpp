// The batch rule of matrix products.
#pragma once

#include "batch/batched_call.hpp"

namespace backplane::core {

void batch_matmul(BatchedCall& call, const ShapeResult* row);

}  // namespace backplane::core
