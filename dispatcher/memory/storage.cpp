// Storages: their memory and their end.
#include "memory/storage.hpp"

#include <new>

#include "memory/allocate.hpp"
#include "memory/device.hpp"
#include "memory/epoch.hpp"
#include "memory/plugin_record.hpp"
#include "memory/pool.hpp"
#include "memory/stream.hpp"

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
  } else if (size != 0) {
    try {
      storage->data = allocate(device, size);
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

void destroy(bp_storage* storage) noexcept {
  Device& device = *storage->device;
  if (storage->owner == bp_storage::Owner::kExternal) {
    if (storage->release_external) storage->release_external(storage->external);
  } else if (storage->owner == bp_storage::Owner::kDevice && storage->data &&
             storage->generation == device.generation.load(std::memory_order_relaxed)) {
    deallocate(device, storage->data, storage->size, storage->uses);
  }
  unlease(device.backend->owner, LeaseKind::kStorage);
  storage->~bp_storage();
  StoragePool::give(storage);
}

}  // namespace backplane::core
