// The host's one thread pool: `parallel_for` as plugins see it through the host table.
//
// Any thread may call parallel_for; the caller works too, and several callers share the workers. Calls from within a
// body run inline. No memory is allocated per call.
#pragma once

#include "backplane/abi/host.h"

namespace backplane::core {

// Runs body over [begin, end) in pieces of at least `grain` (one piece where the range is smaller). Returns BP_OK or
// the status of the first failing piece, in the order of the range, with its message as this thread's error; pieces
// that did not start before are skipped. A C++ exception from a body becomes BP_ERROR_INTERNAL.
bp_status parallel_for(int64_t begin, int64_t end, int64_t grain, bp_parallel_body body, void* context) noexcept;

// Above every `worker` that a body is given. Within one parallel_for no two running bodies have the same.
int32_t worker_count() noexcept;

// The pool's part in fork(), called by fork.cpp alone. The child's pool has no threads until its next use.
void restart_pool_after_fork();

}  // namespace backplane::core
