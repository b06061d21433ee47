// What the devices offer beyond the device table: a struct of functions per extension of the contract.
#pragma once

#include "backplane/abi/device_extensions.h"

namespace backplane::cuda {

// The table's slot: nullptr for an unknown name or version.
const void* BP_CALL find_extension(void* context, const char* name, uint32_t version);

// In extensions_of_memory.cpp.
extern const bp_extension_pinned kPinned;
extern const bp_extension_peer kPeer;
extern const bp_extension_memory kMemory;
// In extensions_of_work.cpp.
extern const bp_extension_capture kCapture;
extern const bp_extension_reset kReset;

}  // namespace backplane::cuda
