// Whether a call is worth releasing the interpreter lock for, by what its operands do not show.
#pragma once

#include "backplane/abi/value.h"

namespace backplane::python {

class OpSignature;

// Of a call without tensors, by the device that it makes some on.
uint64_t work_of_creation(const bp_value* values, int32_t count) noexcept;

// How much work a call may be, in bytes: its operands, and the elements that a creation op makes.
uint64_t bytes_of_call(const OpSignature& signature, const bp_value* values, int32_t count) noexcept;

}  // namespace backplane::python
