// The memory that kernels take with host->scratch, while one runs.
#pragma once

#include "memory/allocate.hpp"
#include "memory/devices/capture.hpp"
#include "memory/devices/stream.hpp"
#include "memory/process/epoch.hpp"

namespace backplane::core {

// Frees what the kernel took once it has returned: all blocks of a call are separate, and work that is recorded
// on its stream after it may reuse them.
class ScratchScope {
 public:
  ScratchScope() : blocks_(cold().scratch), begin_(blocks_.size()) {}
  ~ScratchScope() { free(); }
  ScratchScope(const ScratchScope&) = delete;
  // Of a kernel that has returned; for a scope over several.
  void free() {
    while (blocks_.size() > begin_) [[unlikely]] {
        const ScratchBlock block = blocks_.back();
        blocks_.pop_back();
        StorageUses uses;
        if (block.ticket) {
          Stream& stream = current_stream(*block.device);
          if (stream.capture) {
            stream.capture->keep(block);
            continue;
          }
          uses.note_write({&stream, block.ticket});
        }
        deallocate(*block.device, block.data, block.size, block.device->generation, uses);
      }
  }

 private:
  std::vector<ScratchBlock>& blocks_;
  size_t begin_;
};

}  // namespace backplane::core
