#include "memory/devices/held_work.hpp"

#include <algorithm>
#include <mutex>

#include "memory/devices/device.hpp"
#include "memory/devices/stream.hpp"

namespace backplane::core {

void hold_until_done(Device& device, std::vector<StorageUse> uses, std::shared_ptr<const void> what) noexcept {
  std::lock_guard lock(device.lock);
  std::erase_if(uses, has_ended);
  if (uses.empty()) return;  // the caller's is the last
  device.held.push_back({std::move(uses), std::move(what)});
}

std::vector<std::shared_ptr<const void>> take_unneeded(Device& device) {
  std::vector<std::shared_ptr<const void>> unneeded;
  std::erase_if(device.held, [&](HeldWork& held) {
    std::erase_if(held.uses, has_ended);
    if (held.uses.empty()) unneeded.push_back(std::move(held.what));
    return held.uses.empty();
  });
  return unneeded;
}

}  // namespace backplane::core
