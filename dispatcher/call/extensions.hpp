#pragma once

#include "backplane/abi/extensions.h"

namespace backplane::core {

// nullptr: there is none of that name and version.
const void* host_extension(const char* name, uint32_t version);

}  // namespace backplane::core
