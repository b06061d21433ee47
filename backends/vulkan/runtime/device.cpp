// Making a logical device, and its memory; see device.hpp.
#include "runtime/device.hpp"

#include <algorithm>
#include <vector>

#include "runtime/check.hpp"

namespace backplane::vulkan {
namespace {

constexpr uint32_t kNoFamily = UINT32_MAX;
constexpr uint32_t kGroupSize = 256;  // of the shaders

uint32_t compute_family(VkPhysicalDevice physical) {
  uint32_t count = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, families.data());
  for (uint32_t i = 0; i < count; ++i)
    if (families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) return i;
  return kNoFamily;
}

}  // namespace

std::string Device::shortcoming(VkPhysicalDevice physical) {
  VkPhysicalDeviceProperties properties;
  vkGetPhysicalDeviceProperties(physical, &properties);
  if (properties.apiVersion < VK_API_VERSION_1_2) return "it offers less than Vulkan 1.2";
  if (compute_family(physical) == kNoFamily) return "it has no compute queue";
  if (properties.limits.maxComputeWorkGroupInvocations < kGroupSize ||
      properties.limits.maxComputeWorkGroupSize[0] < kGroupSize)
    return "its workgroups are smaller than 256";
  VkPhysicalDeviceVulkan12Features offered{};
  offered.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  VkPhysicalDeviceFeatures2 features{};
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  features.pNext = &offered;
  vkGetPhysicalDeviceFeatures2(physical, &features);
  if (!offered.timelineSemaphore) return "it lacks timelineSemaphore";
  if (!offered.bufferDeviceAddress) return "it lacks bufferDeviceAddress";
  return {};
}

Device::Device(VkPhysicalDevice physical) : physical_(physical), family_(compute_family(physical)) {
  vkGetPhysicalDeviceMemoryProperties(physical, &memory_);
  const float priority = 1;
  VkDeviceQueueCreateInfo queue{};
  queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue.queueFamilyIndex = family_;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkPhysicalDeviceVulkan12Features features{};
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  features.timelineSemaphore = VK_TRUE;
  features.bufferDeviceAddress = VK_TRUE;
  VkDeviceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.pNext = &features;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  check(vkCreateDevice(physical, &info, nullptr, &device_), "vkCreateDevice");
  vkGetDeviceQueue(device_, family_, 0, &queue_);
  try {
    layout_ = make_layout();
  } catch (...) {
    release();
    throw;
  }
}

Device::~Device() { release(); }

void Device::release() noexcept {
  for (const auto& [buffer, block] : blocks_) destroy(block);
  for (VkPipeline pipeline : pipelines_) vkDestroyPipeline(device_, pipeline, nullptr);
  vkDestroyPipelineLayout(device_, layout_, nullptr);
  vkDestroyDevice(device_, nullptr);
}

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

void Device::bind_memory(Block& block, VkMemoryPropertyFlags needed, VkMemoryPropertyFlags liked, bool addressed) {
  VkMemoryRequirements requirements;
  vkGetBufferMemoryRequirements(device_, block.buffer, &requirements);
  VkMemoryAllocateFlagsInfo flags{};
  flags.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO;
  flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  VkMemoryAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  info.pNext = addressed ? &flags : nullptr;
  info.allocationSize = requirements.size;
  info.memoryTypeIndex = memory_type(requirements.memoryTypeBits, needed, liked);
  check(vkAllocateMemory(device_, &info, nullptr, &block.memory), "vkAllocateMemory");
  check(vkBindBufferMemory(device_, block.buffer, block.memory, 0), "vkBindBufferMemory");
  if (needed & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT)
    check(vkMapMemory(device_, block.memory, 0, VK_WHOLE_SIZE, 0, &block.mapped), "vkMapMemory");
  if (!addressed) return;
  VkBufferDeviceAddressInfo address{};
  address.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO;
  address.buffer = block.buffer;
  block.address = vkGetBufferDeviceAddress(device_, &address);
}

Block Device::make_block(uint64_t size, VkBufferUsageFlags usage, VkMemoryPropertyFlags needed,
                         VkMemoryPropertyFlags liked) {
  Block block;
  block.size = (size + 3) / 4 * 4;  // kernels write whole words, and vkCmdFillBuffer takes multiples of 4
  VkBufferCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  info.size = block.size;
  info.usage = usage | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  info.sharingMode = VK_SHARING_MODE_EXCLUSIVE;
  check(vkCreateBuffer(device_, &info, nullptr, &block.buffer), "vkCreateBuffer");
  try {
    bind_memory(block, needed, liked, (usage & VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT) != 0);
  } catch (...) {
    destroy(block);
    throw;
  }
  return block;
}

VkBuffer Device::allocate(uint64_t size) {
  const Block block = make_block(size, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT,
                                 0, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
  blocks_.emplace(block.buffer, block);
  use_.in_use += block.size;
  use_.peak = std::max(use_.peak, use_.in_use);
  return block.buffer;
}

void Device::deallocate(VkBuffer buffer) {
  const auto found = blocks_.find(buffer);
  BP_CHECK(found != blocks_.end(), VALUE, "vulkan: deallocate: ", buffer, " is no block of this device");
  use_.in_use -= found->second.size;
  destroy(found->second);
  blocks_.erase(found);
}

const Block& Device::block(const void* data, uint64_t offset, uint64_t size) const {
  const auto found = blocks_.find(reinterpret_cast<VkBuffer>(const_cast<void*>(data)));
  BP_CHECK(found != blocks_.end(), VALUE, "vulkan: ", data, " is no block of this device");
  BP_CHECK(offset <= found->second.size && size <= found->second.size - offset, VALUE, "vulkan: bytes ", offset, " to ",
           offset + size, " lie outside a block of ", found->second.size, " bytes");
  return found->second;
}

Block Device::make_staging(uint64_t size) {
  return make_block(size, 0, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
                    VK_MEMORY_PROPERTY_HOST_CACHED_BIT);
}

void Device::destroy(const Block& block) {
  vkDestroyBuffer(device_, block.buffer, nullptr);
  vkFreeMemory(device_, block.memory, nullptr);
}

}  // namespace backplane::vulkan
