#include "memory/foreign_storage.hpp"

#include <memory>
#include <mutex>
#include <vector>

#include "memory/devices/device.hpp"
#include "memory/devices/held_work.hpp"
#include "memory/devices/stream.hpp"

namespace backplane::core {
namespace {

// Memory of a producer, on a device with streams: given back once the work that uses it has ended.
struct Borrowed {
  void* owner;
  void (*release_owner)(void*);
  bp_storage* storage;
};

void give_back_after_work(void* external) {
  const std::unique_ptr<Borrowed> borrowed(static_cast<Borrowed*>(external));
  Device& device = *borrowed->storage->device;
  const std::shared_ptr<const void> owner(
      borrowed->owner, [release = borrowed->release_owner](const void* held) { release(const_cast<void*>(held)); });
  std::vector<StorageUse> uses;
  {
    std::lock_guard lock(device.lock);
    borrowed->storage->uses.each([&](const StorageUse& use) {
      flush(*use.stream);
      refresh_completed(*use.stream);
      uses.push_back(use);
    });
  }
  hold_until_done(device, std::move(uses), owner);
}

bp_storage* wrap(Device& device, void* data, uint64_t size, void* owner, void (*release_owner)(void*)) {
  if (device.synchronous() || !release_owner) return wrap_storage(device, data, size, owner, release_owner);
  auto borrowed = std::make_unique<Borrowed>(Borrowed{owner, release_owner, nullptr});
  bp_storage* storage = wrap_storage(device, data, size, borrowed.get(), give_back_after_work);
  borrowed.release()->storage = storage;
  return storage;
}

}  // namespace

bp_storage* foreign_storage(Device& device, void* data, uint64_t size, void* owner, void (*release_owner)(void*),
                            const char* op) {
  bp_storage* storage = wrap(device, data, size, owner, release_owner);
  if (device.synchronous()) return storage;
  Stream& stream = current_stream(device);
  if (stream.capture) return storage;
  std::lock_guard lock(device.lock);
  issue(stream, op, nullptr, 0, &storage, 1);
  flush(stream);
  return storage;
}

}  // namespace backplane::core
