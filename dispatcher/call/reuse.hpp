// Calls whose caller donates some of the operands.
#pragma once

#include "registry/registry.hpp"

namespace backplane::core {

// As `call` with one result, where the caller donates the tensors args[i] of the set bits: bp_host::call_op_donating.
void call_donating(const OpEntry& op, const bp_value* args, int32_t n_args, bp_value* out, uint64_t mask,
                   uint64_t donated);

}  // namespace backplane::core
