// The memory of one simulated device.
//
// One sparse file in memory is mapped twice. The first mapping is PROT_NONE: its addresses are what the host is
// given, and touching them is a fault, as with a real accelerator. The second, private one is for the device's own
// threads. In handle mode, there is no first mapping, and the host gets small integers.
// Owns all blocks; any thread may call; a block must not be released while work on it is queued.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>

namespace sim {

enum class Addressing { kProtected, kHandle };

struct MemoryStats {
  uint64_t in_use = 0;
  uint64_t peak = 0;
};

class DeviceMemory {
 public:
  DeviceMemory(Addressing addressing, uint64_t capacity);  // throws backplane::Error
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // At a multiple of `alignment`, a power of two. Throws Error(BP_ERROR_MEMORY).
  void* allocate(uint64_t size, uint64_t alignment = 1);
  void release(void* block);  // throws Error(BP_ERROR_VALUE) for what allocate did not return
  void clear();               // releases every block
  // Where the device's threads see `size` bytes of a block; throws if they are not all inside the block.
  char* resolve(const void* block, uint64_t byte_offset, uint64_t size) const;

  uint64_t capacity() const { return capacity_; }
  MemoryStats stats() const;

 private:
  struct Block {
    uint64_t offset;
    uint64_t size;
  };
  uint64_t take_range(uint64_t size, uint64_t alignment);
  void give_range(uint64_t offset, uint64_t size);
  void* name_of(uint64_t offset);
  void unmap() noexcept;

  const Addressing addressing_;
  const uint64_t capacity_;
  int file_ = -1;
  char* device_view_ = nullptr;
  char* host_view_ = nullptr;

  mutable std::mutex mutex_;           // guards what follows
  std::map<uint64_t, uint64_t> free_;  // offset -> size, neighbours merged
  std::unordered_map<uintptr_t, Block> blocks_;
  uintptr_t next_handle_ = 1;
  MemoryStats stats_;
};

}  // namespace sim
