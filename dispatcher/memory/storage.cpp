// Storages: their memory and their end.
#include "memory/storage.hpp"

#include <new>
#include <utility>

#include "memory/allocate.hpp"
#include "memory/devices/device.hpp"
#include "memory/devices/stream.hpp"
#include "memory/process/epoch.hpp"
#include "memory/process/plugin_record.hpp"
#include "memory/process/pool.hpp"

namespace backplane::core {

using StoragePool = Pool<sizeof(bp_storage)>;

bp_storage* new_storage(Device& device, uint64_t size) {
  auto* storage = new (StoragePool::take()) bp_storage;
  storage->device = &device;
  storage->size = size;
  storage->generation = device.generation.load(std::memory_order_relaxed);
  if (size <= kSmallBytes && device.host_memory()) {
    storage->data = storage->small;
    storage->owner = bp_storage::Owner::kInline;
  } else if (size != 0 || !device.shares_memory()) {  // kernels there bind a block, also of a tensor without elements
    try {
      storage->data = allocate(device, size, storage->uses);
    } catch (...) {
      StoragePool::give(storage);
      throw;
    }
  }
  lease(device.backend->owner, LeaseKind::kStorage);
  return storage;
}

bp_storage* wrap_storage(Device& device, void* data, uint64_t size, void* owner, void (*release_owner)(void*)) {
  auto* storage = new (StoragePool::take()) bp_storage;
  storage->device = &device;
  storage->size = size;
  storage->generation = device.generation.load(std::memory_order_relaxed);
  storage->data = data;
  storage->owner = bp_storage::Owner::kExternal;
  storage->external = owner;
  storage->release_external = release_owner;
  lease(device.backend->owner, LeaseKind::kStorage);
  return storage;
}

namespace {

void end(bp_storage* storage) noexcept {
  unlease(storage->device->backend->owner, LeaseKind::kStorage);
  storage->~bp_storage();
  StoragePool::give(storage);
}

void give_back(bp_storage* storage) noexcept {
  if (storage->release_external) storage->release_external(storage->external);
  end(storage);
}

// The lender may hold a tensor over memory that was lent as well, as an array of NumPy over a tensor over an array
// does. Each ends at once, as a lender's code may count on; of a chain of many the rest ends when these have, or it
// would take as many frames. `data` links those to come.
void end_borrowed(bp_storage* storage) noexcept {
  constexpr int kNested = 16;
  thread_local int nested = 0;
  thread_local bp_storage* waiting = nullptr;
  if (nested == kNested) {
    storage->data = std::exchange(waiting, storage);
    return;
  }
  ++nested;
  give_back(storage);
  while (nested == 1 && waiting) give_back(std::exchange(waiting, static_cast<bp_storage*>(waiting->data)));
  --nested;
}

}  // namespace

void destroy(bp_storage* storage) noexcept {
  if (storage->owner == bp_storage::Owner::kExternal) return end_borrowed(storage);
  if (storage->owner == bp_storage::Owner::kDevice && storage->data &&
      storage->generation == storage->device->generation.load(std::memory_order_relaxed))
    deallocate(*storage->device, storage->data, storage->size, storage->generation, storage->uses);
  end(storage);
}

}  // namespace backplane::core
