// Executables of compilers that can write theirs down (cache_key, serialize, deserialize): kept in files, so that what
// one process compiled others need not. A file is $BACKPLANE_EXECUTABLES/<backend>-<hash>; without that variable it
// lies where the user's caches are, and an empty one asks for none (backplane/plugin/cache_file.hpp).
#pragma once

#include "backplane/abi/extensions.h"
#include "memory/devices/device.hpp"

namespace backplane::core::graph {

// Of a region: from a file, or compiled, and kept then. Gives what `compile` of the device's compiler gave.
bp_status find_or_compile(const Device& device, const bp_graph& region, bp_executable_info* info,
                          bp_executable** executable);

}  // namespace backplane::core::graph
