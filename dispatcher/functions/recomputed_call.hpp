// Recording a call of an op whose derivative is its decomposition's, where a kernel computes the call: that runs, and
// one node is recorded, whose backward pass runs the decomposition. The tape and the levels reach it through
// record_recomputed (tape/record.hpp).
#pragma once

#include "grad/grad_level.hpp"
#include "tape/record.hpp"

namespace backplane::core {

// False: it declines. `level`: nullptr is the tape.
bool record_recomputed_call(const Call& call, const GradLevel* level);

}  // namespace backplane::core
