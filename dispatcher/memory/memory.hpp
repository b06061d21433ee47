// Memory of devices beyond what the public header offers: caches, and what errors say of them.
#pragma once

#include <string>

#include "memory/devices/device.hpp"

namespace backplane::core {

// The pool's and the backend's; false: there was none to empty.
bool empty_caches(Device& device);
// "1234567 bytes (1.2 MiB)"
std::string bytes_text(uint64_t bytes);
// For errors: "; 3 bytes are in use, no limit is set", or "" of a device that does not count.
std::string usage_text(Device& device);
bool has_memory_limit(Device& device);

}  // namespace backplane::core
