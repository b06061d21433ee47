// The device table of the backend "cpu": one device, host memory, work done when a kernel returns.
#pragma once

#include "backplane/plugin.hpp"

namespace backplane::cpu {

bp_backend_def backend_def(const bp_host* host);

// At unload: gives kept memory back.
bp_status BP_CALL stop_device(void* context);

}  // namespace backplane::cpu
