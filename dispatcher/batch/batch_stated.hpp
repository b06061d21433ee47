// What remains where no rule follows from an op's shape class: the entry's formula, no rows, an error.
//
// All run below the level and write plain tensors of the level below to the call's out slots, with the batch at axis 0.
#pragma once

#include "batch/batched_call.hpp"

namespace backplane::core {

void run_stated(BatchedCall& call);
// Throws: no rule, or one refused in writing.
[[noreturn]] void refuse_batch(const BatchedCall& call);
// Results of a batch of size 0.
void no_rows(BatchedCall& call);

}  // namespace backplane::core
