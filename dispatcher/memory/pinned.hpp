// Host memory that a backend's devices read and write on their own ("pinned"), as storages of the host's device.
//
// Blocks that nobody uses are kept, since making one costs more than most copies. A storage over one holds a lease on
// the backend's plugin. Its end may come on any thread, also on a backend's own, and calls nothing of the backend.
#pragma once

#include "memory/devices/device.hpp"

namespace backplane::core {

struct PinnedBlock {
  BackendRecord* backend;
  void* data;
  uint64_t size;
};

// At least `size` bytes. Throws where the backend offers none.
bp_storage* new_pinned(BackendRecord& backend, uint64_t size);
// nullptr: the storage's memory is ordinary.
const PinnedBlock* pinned_block(const bp_storage& storage) noexcept;
// Gives the blocks that nobody uses back to the backend.
void empty_pinned(BackendRecord& backend) noexcept;

}  // namespace backplane::core
