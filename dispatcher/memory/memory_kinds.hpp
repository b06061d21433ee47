// Blocks of a kind of memory that the program names: outside of the pool, and given back when their work has ended.
#pragma once

#include "memory/devices/device.hpp"

namespace backplane::core {

// Gives blocks that no tensor has, and no work uses any more, back to the backend. Under the device's lock.
void reclaim_kinds(Device& device) noexcept;

}  // namespace backplane::core
