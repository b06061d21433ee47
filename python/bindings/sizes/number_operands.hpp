// Traced numbers as operands of ops.
//
// Needs the interpreter lock.
#pragma once

#include "bindings/sizes/number_log.hpp"

namespace backplane::python {

// As NumberHook::follow.
void follow_operands(OpHandle op, PyObject* const* given, bp_value* values, int32_t count) noexcept;

}  // namespace backplane::python
