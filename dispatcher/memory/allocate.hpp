// Memory of devices: from the backend or the pool, again once caches are empty, and back.
#pragma once

#include <memory>

#include "memory/devices/device.hpp"

namespace backplane::core {

// An asynchronous device's comes from its pool: `pending` then has the work that may still use it, which is all on this
// thread's current stream. Throws Error(BP_ERROR_MEMORY).
void* allocate(Device& device, uint64_t size, StorageUses& pending);
// `uses`: the work after which others may have the block; `generation`: of the device, as it was allocated. Never
// waits, so that a callback may end a tensor.
void deallocate(Device& device, void* data, uint64_t size, uint32_t generation, const StorageUses& uses) noexcept;
// Back to the backend, inside a CallGuard. A failure is dropped: tensors end where nothing can be raised.
void deallocate_in_backend(Device& device, void* data, uint64_t size) noexcept;
// Under the device's lock: takes the blocks that were freed while another thread held it.
void take_freed(Device& device) noexcept;
// What the backend is asked for: whole granules of its copies, and never nothing.
uint64_t block_size(const Device& device, uint64_t size);
// Does the device's backend keep freed memory itself, although work on it is asynchronous?
bool keeps_own_pool(const Device& device);
// Of a device that is being started; nullptr for a synchronous one, and where the backend keeps a pool.
std::unique_ptr<BlockPool> make_pool(const Device& device);
// Gives what an asynchronous device's pool has kept, and no work uses, back to the backend.
void empty_pool(Device& device);
// Of a tensor whose size in bytes does not fit.
[[noreturn]] void fail_size(const int64_t* sizes, int32_t ndim, uint64_t item_size);

}  // namespace backplane::core
