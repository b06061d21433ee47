// A device's blocks of memory; see device.hpp.
#include <algorithm>
#include <iterator>

#include "runtime/check.hpp"
#include "runtime/device.hpp"

namespace backplane::vulkan {

uint64_t Device::total_memory(VkPhysicalDevice physical) {
  VkPhysicalDeviceMemoryProperties memory;
  vkGetPhysicalDeviceMemoryProperties(physical, &memory);
  uint64_t largest = 0;
  for (uint32_t i = 0; i < memory.memoryHeapCount; ++i)
    if (memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)
      largest = std::max<uint64_t>(largest, memory.memoryHeaps[i].size);
  return largest;
}

uint32_t Device::memory_type(uint32_t allowed, VkMemoryPropertyFlags needed, VkMemoryPropertyFlags liked) const {
  for (const VkMemoryPropertyFlags wanted : {needed | liked, needed})
    for (uint32_t i = 0; i < memory_.memoryTypeCount; ++i)
      if ((allowed >> i & 1) && (memory_.memoryTypes[i].propertyFlags & wanted) == wanted) return i;
  ::backplane::detail::fail(BP_ERROR_DEVICE, "vulkan: the device has no memory of the kind needed (flags ", needed,
                            ")");
}

void Device::bind_memory(Block& block, VkMemoryPropertyFlags needed, VkMemoryPropertyFlags liked) {
  VkMemoryRequirements requirements;
  vkGetBufferMemoryRequirements(device_, block.buffer, &requirements);
  VkMemoryAllocateFlagsInfo flags{};
  flags.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO;
  flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  VkMemoryAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  info.pNext = &flags;
  info.allocationSize = requirements.size;
  info.memoryTypeIndex = memory_type(requirements.memoryTypeBits, needed, liked);
  check(vkAllocateMemory(device_, &info, nullptr, &block.memory), "vkAllocateMemory");
  check(vkBindBufferMemory(device_, block.buffer, block.memory, 0), "vkBindBufferMemory");
  constexpr VkMemoryPropertyFlags kReached = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  const bool wanted = ((needed | liked) & kReached) == kReached;
  if (wanted && (memory_.memoryTypes[info.memoryTypeIndex].propertyFlags & kReached) == kReached) {
    void* mapped = nullptr;
    check(vkMapMemory(device_, block.memory, 0, VK_WHOLE_SIZE, 0, &mapped), "vkMapMemory");
    block.mapped = static_cast<char*>(mapped);
  }
  VkBufferDeviceAddressInfo address{};
  address.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO;
  address.buffer = block.buffer;
  block.address = vkGetBufferDeviceAddress(device_, &address);
}

Block Device::make_block(uint64_t size, VkMemoryPropertyFlags needed, VkMemoryPropertyFlags liked) {
  Block block;
  block.size = size;
  VkBufferCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  info.size = size;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT |
               VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  info.sharingMode = VK_SHARING_MODE_EXCLUSIVE;
  check(vkCreateBuffer(device_, &info, nullptr, &block.buffer), "vkCreateBuffer");
  try {
    bind_memory(block, needed, liked);
  } catch (...) {
    destroy(block);
    throw;
  }
  ++counts.objects;
  return block;
}

uint64_t Device::allocate(uint64_t size, bool host_visible) {
  constexpr VkMemoryPropertyFlags kReached = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  constexpr VkMemoryPropertyFlags kCached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
  std::lock_guard lock(mutex);
  const Block block = host_visible ? make_block(size, kReached, kCached)
                                   : make_block(size, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
                                                unified_ ? kReached | kCached : VkMemoryPropertyFlags{0});
  blocks_.emplace(block.address, block);
  reserved_ += block.size;
  peak_ = std::max(peak_.load(), reserved_.load());
  return block.address;
}

void Device::deallocate(uint64_t address) {
  std::lock_guard lock(mutex);
  auto found = blocks_.upper_bound(address);
  BP_CHECK(found != blocks_.begin() && address - std::prev(found)->first < std::prev(found)->second.size, VALUE,
           "vulkan: deallocate: ", address, " lies in no block of this device");
  --found;
  reserved_ -= found->second.size;
  destroy(found->second);
  blocks_.erase(found);
}

Place Device::place(uint64_t address, uint64_t size) const {
  std::lock_guard lock(mutex);
  auto found = blocks_.upper_bound(address);
  BP_CHECK(found != blocks_.begin(), VALUE, "vulkan: ", address, " is no address of this device");
  const Block& block = (--found)->second;
  const uint64_t offset = address - block.address;
  BP_CHECK(offset <= block.size && size <= block.size - offset, VALUE, "vulkan: bytes ", offset, " to ", offset + size,
           " lie outside a block of ", block.size, " bytes");
  return {block.buffer, offset, address, block.mapped ? block.mapped + offset : nullptr};
}

Block Device::make_staging(uint64_t size) {
  return make_block(size, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
                    VK_MEMORY_PROPERTY_HOST_CACHED_BIT);
}

void Device::destroy(const Block& block) {
  vkDestroyBuffer(device_, block.buffer, nullptr);
  vkFreeMemory(device_, block.memory, nullptr);
}

}  // namespace backplane::vulkan
