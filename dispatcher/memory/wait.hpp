// Waiting for a stream in its backend: with a deadline where there is one, and no longer than the device is there.
#pragma once

#include "memory/stream.hpp"

namespace backplane::core {

// Returns what the backend said once `ticket`, which was flushed, is complete or has failed. Under no lock, inside a
// CallGuard. Throws where the device is lost meanwhile, or its wait_timeout ends: then it is lost from now on.
bp_status wait_in_backend(Stream& stream, uint64_t ticket);

}  // namespace backplane::core
