// What ops may find wrong in their data.
#pragma once

#include <vector>

#include "check/compiled.hpp"

namespace backplane::codegen {

// Fills in CompiledOp::faults: as stated; else the faults of the ops in the decomposition; else none. Reports an op
// without faults that has a sample which raises DataError.
void derive_faults(std::vector<CompiledOp>& ops, Diagnostics& diagnostics);

}  // namespace backplane::codegen
