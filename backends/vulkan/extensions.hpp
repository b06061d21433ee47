// What the devices offer beyond the device table: a struct of functions per extension of the contract.
#pragma once

#include "backplane/abi/extensions.h"

namespace backplane::vulkan {

// The table's slot: nullptr for an unknown name or version.
const void* BP_CALL find_extension(void* context, const char* name, uint32_t version);

}  // namespace backplane::vulkan
