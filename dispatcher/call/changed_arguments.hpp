// The in-place form of an op with several results. Each goes to the argument of its name.
#pragma once

#include "call/dispatch.hpp"

namespace backplane::core {

// The index of that argument; -1: none has the name.
int32_t argument_of_result(const OpRecord& record, size_t result);

// A kernel writes into the arguments where no transform and no derivative follows them. Otherwise the op computes new
// values, and then each argument gets its own, as by copy_. Throws before anything is written if an argument is no
// tensor, or two of them share elements.
void change_arguments(const OpEntry& op, const bp_value* args, int32_t n_args);

// Is the derivative of the call taken through the decomposition, and is one recorded? Then the in-place form of an op
// with one result goes the same way.
bool changes_by_decomposition(const OpEntry& op, const bp_value* args, int32_t n_args);

}  // namespace backplane::core
