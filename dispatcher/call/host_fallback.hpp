// Running an op on the host for a device that has no kernel for it: counted, reported once per op, and forbiddable.
#pragma once

#include "backplane/placement.hpp"
#include "call/placement.hpp"

namespace backplane::core {

// With copied operands, whose results it brings back.
void call_host_fallback(const Call& call, Device& device);

}  // namespace backplane::core
