// Storages over memory that the host did not allocate, on any device.
#pragma once

#include "memory/storage.hpp"

namespace backplane::core {

// What the calling thread's current stream has been given before comes before every use of the storage, on any stream.
// `release_owner(owner)` runs once, when the storage is gone and the work that uses it has ended; nullptr: the memory
// is lent for work in the order of that stream. `op` names the position on the stream in errors.
bp_storage* foreign_storage(Device& device, void* data, uint64_t size, void* owner, void (*release_owner)(void*),
                            const char* op);

}  // namespace backplane::core
