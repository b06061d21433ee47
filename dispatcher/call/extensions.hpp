#pragma once

#include "backplane/abi/extensions.h"

namespace backplane::core {

// nullptr for an unknown name or version.
const void* host_extension(const char* name, uint32_t version);

}  // namespace backplane::core
