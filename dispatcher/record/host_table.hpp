// The table given to plugins and to the native code of formulas; call/host_table.cpp fills it in.
#pragma once

#include "backplane/abi/host.h"

namespace backplane::core {
extern const bp_host host_table;
}  // namespace backplane::core
