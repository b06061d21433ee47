// A rank's result from the operands of all ranks, where it can read them: in the process, or in memory that ranks
// share.
#pragma once

#include <cstddef>
#include <span>

#include "provider.h"

namespace backplane::collectives {

// Writes `call.out` of the rank at `place`. Reduces in the order of ranks, so that all ranks have the same bits. Of all
// calls but SEND, RECV and BARRIER.
bp_status compute_result(const bp_collective_call& call, size_t place, std::span<const void* const> operands);

}  // namespace backplane::collectives
