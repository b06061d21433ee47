// Which blocks still are their device's. See retired_blocks.hpp.
#include "checked/retired_blocks.hpp"

#include <mutex>

#include "memory/allocate.hpp"
#include "memory/fork.hpp"
#include "memory/process/epoch.hpp"
#include "memory/process/lock.hpp"

namespace backplane::core {
namespace {

StaticLock retired_lock{LockRank::kPool};  // of the lists of all rows

// In a forked child, blocks of a device that cannot be used there belong to the parent.
bool is_current(const RetiredBlock& block) {
  const Device& device = *block.device;
  return device.state == DeviceState::kReady && !device.backend->withdrawn && block.generation == device.generation &&
         device.fork_generation == fork_generation();
}

}  // namespace

RetiredBlock lent_block(Device& device, void* data, uint64_t size, bool is_argument) {
  return {&device, data, size, is_argument, device.generation};
}

void give_back(const RetiredBlock& block) noexcept {
  Device& device = *block.device;
  const CallGuard guard;  // the backend stays until it is left
  std::lock_guard lock(device.lock);
  if (is_current(block)) deallocate_in_backend(device, block.data, block.size);
}

RetiredBlocks::~RetiredBlocks() {
  for (const auto& [device, blocks] : of_)
    for (const RetiredBlock& block : blocks) give_back(block);
}

RetiredBlocks::Taken::Taken(RetiredBlocks& from, Device& device) : from_(from), device_(device) {
  std::lock_guard lock(retired_lock);
  blocks.swap(from_.of_[&device]);  // whose place in the map is there for the end
  std::erase_if(blocks, [](const RetiredBlock& block) { return !is_current(block); });
}

RetiredBlocks::Taken::~Taken() {
  std::lock_guard lock(retired_lock);
  std::vector<RetiredBlock>& kept = from_.of_[&device_];
  if (kept.empty())
    kept.swap(blocks);
  else
    kept.insert(kept.end(), blocks.begin(), blocks.end());
}

}  // namespace backplane::core
