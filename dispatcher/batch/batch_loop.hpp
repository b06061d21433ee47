// An op over the rows of a batch, one by one.
#pragma once

#include "batch/batched_call.hpp"

namespace backplane::core {

// Below the level; writes plain tensors of the level below to the call's out slots, with the batch at axis 0. Counted,
// reported once per op, and forbidden where allow_batch_loop said so.
void run_loop(BatchedCall& call);
// The same without counting and without a refusal, for at least one row.
void run_rows(BatchedCall& call);
// Of an op that batches through its decomposition: is a kernel, row by row, the faster way?
bool rows_have_kernel(const BatchedCall& call);

}  // namespace backplane::core
