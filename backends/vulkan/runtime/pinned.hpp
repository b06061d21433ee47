// Host memory that devices read and write on their own, as the extension "pinned" asks for it: whole pages of the
// process, which each device imports (VK_EXT_external_memory_host) when it first copies from or to them. It outlives
// the reset of a device. Any thread may call.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <span>

namespace backplane::vulkan {

class PinnedMemory {
 public:
  ~PinnedMemory();  // frees what was not released

  void* allocate(uint64_t size, uint64_t alignment);  // throws Error(BP_ERROR_MEMORY)
  void release(void* data);                           // no device has it any more
  // The whole block in which the bytes lie, as devices import it; throws Error(BP_ERROR_DEVICE).
  std::span<char> block_of(const void* data, uint64_t size);

 private:
  std::mutex mutex_;                  // guards what follows
  std::map<char*, uint64_t> blocks_;  // sizes
};

}  // namespace backplane::vulkan
