// Blocks of pages; see pinned.hpp. How a device imports them is in memory.cpp.
#include "runtime/pinned.hpp"

#include <cstdlib>
#include <iterator>

#include "backplane/error.hpp"

namespace backplane::vulkan {

PinnedMemory::~PinnedMemory() {
  for (const auto& [data, size] : blocks_) std::free(data);
}

void* PinnedMemory::allocate(uint64_t size, uint64_t alignment) {
  const uint64_t rounded = (size + alignment - 1) / alignment * alignment;
  void* data = rounded >= size ? std::aligned_alloc(alignment, rounded) : nullptr;
  BP_CHECK(data, MEMORY, "vulkan: the host has no memory for ", size, " bytes to pin");
  std::lock_guard lock(mutex_);
  blocks_.emplace(static_cast<char*>(data), rounded);
  return data;
}

void PinnedMemory::release(void* data) {
  std::lock_guard lock(mutex_);
  BP_CHECK(blocks_.erase(static_cast<char*>(data)), VALUE, "vulkan: ", data, " is not pinned memory");
  std::free(data);
}

std::span<char> PinnedMemory::block_of(const void* data, uint64_t size) {
  char* begin = static_cast<char*>(const_cast<void*>(data));
  std::lock_guard lock(mutex_);
  auto found = blocks_.upper_bound(begin);
  const bool inside = found != blocks_.begin() && begin + size <= std::prev(found)->first + std::prev(found)->second;
  BP_CHECK(inside, DEVICE, "vulkan: the ", size, " bytes at ", data, " are not pinned memory");
  --found;
  return {found->first, found->second};
}

}  // namespace backplane::vulkan
