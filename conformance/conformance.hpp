// `backplane conformance`: every op, dtype and sample on a device against the CPU. The only door of this folder.
#pragma once

#include "outcome.hpp"

namespace backplane::conformance {

// Loads the plugins, runs the mode and reports. The exit status: 0 when all passed. Throws Error.
int run(const Options& options);
std::vector<std::string> mode_names();

}  // namespace backplane::conformance
