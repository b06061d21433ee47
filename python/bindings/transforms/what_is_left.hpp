// What a traced function leaves behind it, in objects and variables: state that it replaces, and tensors of the trace.
//
// Both functions need the interpreter lock.
#pragma once

#include <span>

#include "backplane/tensor.hpp"
#include "bindings/transforms/names_of_run.hpp"
#include "bindings/transforms/state_before.hpp"

namespace backplane::python {

// False: a Python error, as where the function replaces a tensor that the graph holds (`used`), which no later call
// would see, or keeps one of the trace, which has no value. Then what was there before is there again.
bool check_what_is_left(const StateBefore& state, const NamesOfRun& names, std::span<const Tensor> used,
                        const char* transform);

// Where the trace has failed: what leads to a tensor of it holds again what it had. Keeps the Python error.
void take_back_what_is_left(const StateBefore& state, const NamesOfRun& names);

}  // namespace backplane::python
