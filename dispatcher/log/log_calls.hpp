// BACKPLANE_LOG=dispatch: reports of calls. With the variable, the edges of ops (registry/plan.hpp) are replaced by
// edges that call the former ones and say what happened; without it, nothing of this file runs.
#pragma once

#include "call/dispatch.hpp"

namespace backplane::core {

// "bp::add(float32[2, 3], 1.5)". Lists of tensors are written as [..., ...].
std::string call_text(const OpEntry& op, const bp_value* args);
// Why the fast path leaves this call to the slow path, for a reader.
std::string why_not_fast(const OpEntry& op, const bp_value* args, const bp_value* outs, uint64_t mask);

}  // namespace backplane::core
