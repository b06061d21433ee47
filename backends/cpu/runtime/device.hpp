// The device table of the backend "cpu": one device, host memory, work done when a kernel returns.
#pragma once

#include "backplane/abi/extensions.h"
#include "backplane/plugin.hpp"

namespace backplane::cpu {

// `compiler` gives the extension of that version, or nullptr; a folder above this one has it.
bp_backend_def backend_def(const bp_host* host, const bp_extension_compiler* (*compiler)(uint32_t version));

// At unload: gives kept memory back.
bp_status BP_CALL stop_device(void* context);

}  // namespace backplane::cpu
