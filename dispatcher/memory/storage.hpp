// The memory behind tensors.
//
// A storage is shared by views, counted by reference, and counts versions: every in-place change of its data adds one.
// Reference counts may be changed from any thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "backplane/abi/value.h"
#include "memory/devices/storage_uses.hpp"

namespace backplane::core {

struct Device;  // memory/devices/device.hpp

inline constexpr uint64_t kSmallBytes = 64;  // data of this size live inside the storage, where memory is the host's

}  // namespace backplane::core

struct bp_storage {
  std::atomic<uint32_t> refs{1};
  std::atomic<uint32_t> version{0};
  backplane::core::Device* device = nullptr;
  void* data = nullptr;
  uint64_t size = 0;
  enum class Owner : uint8_t { kDevice, kInline, kExternal } owner = Owner::kDevice;
  bool read_only = false;
  uint32_t generation = 0;   // of the device, as the memory was made
  void* external = nullptr;  // kExternal: notified when the storage dies
  void (*release_external)(void*) = nullptr;
  backplane::core::StorageUses uses;  // of asynchronous devices alone
  alignas(16) unsigned char small[backplane::core::kSmallBytes];
};

namespace backplane::core {

inline void retain(bp_storage* storage) noexcept { storage->refs.fetch_add(1, std::memory_order_relaxed); }
void destroy(bp_storage* storage) noexcept;
inline void release(bp_storage* storage) noexcept {
  if (storage->refs.load(std::memory_order_acquire) == 1 || storage->refs.fetch_sub(1, std::memory_order_acq_rel) == 1)
    destroy(storage);
}

// A storage of at least `size` bytes on a device. Throws Error(BP_ERROR_MEMORY).
bp_storage* new_storage(Device& device, uint64_t size);
// Of the caller's host memory.
bp_storage* wrap_storage(Device& device, void* data, uint64_t size, void* owner, void (*release_owner)(void*));

}  // namespace backplane::core
