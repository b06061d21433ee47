// `backplane conformance`: every op, dtype and sample on a device against the CPU. The only door of this folder.
#pragma once

#include "backplane/op.hpp"
#include "backplane/placement.hpp"
#include "outcome.hpp"

namespace backplane::conformance {

// Loads the plugins, runs the mode and reports. The exit status: 0 when all passed. Throws Error.
int run(const Options& options);
std::vector<std::string> mode_names();

// What ran where in a call of the op's first sample on the device. Throws Error: what the call did, and for an op that
// has no sample to call.
std::vector<Placement> placement_of(OpHandle op, bp_device device);

}  // namespace backplane::conformance
