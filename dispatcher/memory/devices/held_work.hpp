// What work on a device still needs when nobody else holds it any more: executables of graphs that are gone.
#pragma once

#include <memory>
#include <vector>

#include "memory/devices/storage_uses.hpp"

namespace backplane::core {

struct Device;

struct HeldWork {
  std::vector<StorageUse> uses;  // until all of these have ended
  std::shared_ptr<const void> what;
};

// Lets go of `what` once the uses have ended: at once, or when the host next finds out. Takes the device's lock.
void hold_until_done(Device& device, std::vector<StorageUse> uses, std::shared_ptr<const void> what) noexcept;
// Under the device's lock: what nothing needs any more. The caller drops it without the lock.
std::vector<std::shared_ptr<const void>> take_unneeded(Device& device);

}  // namespace backplane::core
