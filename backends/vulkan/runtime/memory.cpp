// A device's blocks of memory; see device.hpp.
#include <algorithm>
#include <iterator>

#include "runtime/check.hpp"
#include "runtime/device.hpp"
#include "runtime/features.hpp"

namespace backplane::vulkan {
namespace {

constexpr VkMemoryPropertyFlags kReached = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;

}  // namespace

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

void Device::bind_memory(Block& block, VkMemoryPropertyFlags needed, VkMemoryPropertyFlags liked,
                         const Foreign& foreign) {
  VkMemoryRequirements requirements;
  vkGetBufferMemoryRequirements(device_, block.buffer, &requirements);
  VkMemoryAllocateFlagsInfo flags{};
  flags.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO;
  flags.pNext = foreign.import;
  flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  VkMemoryAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  info.pNext = &flags;
  info.allocationSize = foreign.import ? block.size : requirements.size;  // of foreign pages, what they are
  info.memoryTypeIndex = memory_type(requirements.memoryTypeBits & foreign.kinds, needed, liked);
  check(vkAllocateMemory(device_, &info, nullptr, &block.memory), "vkAllocateMemory");
  check(vkBindBufferMemory(device_, block.buffer, block.memory, 0), "vkBindBufferMemory");
  const bool wanted = !foreign.import && ((needed | liked) & kReached) == kReached;
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

Block Device::make_block(uint64_t size, VkMemoryPropertyFlags needed, VkMemoryPropertyFlags liked,
                         const Foreign& foreign) {
  Block block;
  block.size = size;
  VkBufferCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  info.pNext = foreign.buffer;
  info.size = size;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT |
               VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  info.sharingMode = VK_SHARING_MODE_EXCLUSIVE;
  check(vkCreateBuffer(device_, &info, nullptr, &block.buffer), "vkCreateBuffer");
  try {
    bind_memory(block, needed, liked, foreign);
  } catch (...) {
    destroy(block);
    throw;
  }
  ++counts.objects;
  return block;
}

uint64_t Device::allocate(uint64_t size, bool host_visible) {
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
           "vulkan: deallocate: ", address, " is not in a block of this device");
  --found;
  reserved_ -= found->second.size;
  destroy(found->second);
  blocks_.erase(found);
}

Place Device::place(uint64_t address, uint64_t size) const {
  std::lock_guard lock(mutex);
  auto found = blocks_.upper_bound(address);
  BP_CHECK(found != blocks_.begin(), VALUE, "vulkan: ", address, " is not an address of this device");
  const Block& block = (--found)->second;
  const uint64_t offset = address - block.address;
  BP_CHECK(offset <= block.size && size <= block.size - offset, VALUE, "vulkan: bytes ", offset, " to ", offset + size,
           " lie outside a block of ", block.size, " bytes");
  return {block.buffer, offset, address, block.mapped ? block.mapped + offset : nullptr};
}

uint64_t Device::import_alignment(VkPhysicalDevice physical) {
  if (!offers_extension(physical, VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME)) return 0;
  constexpr VkStructureType kType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT;
  return properties_of<VkPhysicalDeviceExternalMemoryHostPropertiesEXT>(physical, kType)
      .minImportedHostPointerAlignment;
}

Block Device::import_pages(std::span<char> pages) {
  constexpr VkExternalMemoryHandleTypeFlagBits kPages = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
  VkExternalMemoryBufferCreateInfo external{};
  external.sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO;
  external.handleTypes = kPages;
  const auto kinds_of = reinterpret_cast<PFN_vkGetMemoryHostPointerPropertiesEXT>(
      vkGetDeviceProcAddr(device_, "vkGetMemoryHostPointerPropertiesEXT"));
  VkMemoryHostPointerPropertiesEXT kinds{};
  kinds.sType = VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT;
  check(kinds_of(device_, kPages, pages.data(), &kinds), "vkGetMemoryHostPointerPropertiesEXT");
  VkImportMemoryHostPointerInfoEXT import{};
  import.sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT;
  import.handleType = kPages;
  import.pHostPointer = pages.data();
  return make_block(pages.size(), kReached, 0, {&external, &import, kinds.memoryTypeBits});
}

std::optional<Place> Device::imported(std::span<char> pages) {
  if (!imports_) return std::nullopt;
  std::lock_guard lock(mutex);
  auto found = imported_.find(pages.data());
  if (found == imported_.end()) found = imported_.emplace(pages.data(), import_pages(pages)).first;
  const Block& block = found->second;
  return Place{block.buffer, 0, block.address, nullptr};
}

void Device::forget(const char* pages) {
  std::lock_guard lock(mutex);
  const auto found = imported_.find(pages);
  if (found == imported_.end()) return;
  destroy(found->second);
  imported_.erase(found);
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
