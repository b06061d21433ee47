// The Vulkan backend's compiler, as the contract's extension.
#pragma once

#include "backplane/abi/extensions.h"

namespace backplane::vulkan {

// NULL for versions to come.
const bp_extension_compiler* compiler(uint32_t version);

}  // namespace backplane::vulkan
