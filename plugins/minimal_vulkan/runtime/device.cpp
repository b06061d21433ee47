// Logical devices; see device.hpp.
#include "runtime/device.hpp"

namespace minimal {

// A module in SPIR-V, which the assembler puts beside the code.
struct Words {
  const uint32_t *begin, *end;
};

#include "modules.inc"

namespace {

uint32_t compute_family(VkPhysicalDevice physical) {
  uint32_t count = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, families.data());
  for (uint32_t i = 0; i < count; ++i)
    if ((families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) != 0) return i;
  return UINT32_MAX;
}

// The features that the shaders need, in the chain that Vulkan reads and writes.
struct Features {
  VkPhysicalDeviceVulkan12Features in12{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
  VkPhysicalDeviceVulkan11Features in11{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES, .pNext = &in12};
  VkPhysicalDeviceFeatures2 base{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &in11};
  Features() = default;
  Features(const Features&) = delete;

  std::array<VkBool32*, 7> needed() {
    return {&in12.timelineSemaphore,       &in12.bufferDeviceAddress,  &in12.shaderInt8,
            &base.features.shaderInt16,    &base.features.shaderInt64, &in12.storageBuffer8BitAccess,
            &in11.storageBuffer16BitAccess};
  }
};

// The module with its constants filled in, and its switches on them left with the one case that they choose: a driver
// that takes a function's body apart before it knows constants would compile every kernel into each pipeline. The
// opcodes, and the places of their words, follow the SPIR-V specification.
std::vector<uint32_t> specialised(const Shader& shader) {
  constexpr uint32_t kSpecConstant = 50, kDecorate = 71, kSwitch = 251, kSpecId = 1, kHeader = 5;
  std::vector<uint32_t> words(kModules[shader.module].begin, kModules[shader.module].end);
  std::map<uint32_t, uint32_t> values;  // by the constant's id
  for (size_t at = kHeader; at < words.size(); at += words[at] >> 16) {
    uint32_t* word = &words[at];
    const uint32_t code = word[0] & 0xffff, length = word[0] >> 16;
    if (code == kDecorate && word[2] == kSpecId) values[word[1]] = shader.constants[word[3]];
    if (code == kSpecConstant && values.contains(word[2])) word[3] = values[word[2]];
    if (code != kSwitch || !values.contains(word[1])) continue;
    uint32_t label = word[2];
    for (uint32_t i = 3; i < length; i += 2)
      if (word[i] == values[word[1]]) label = word[i + 1];
    for (uint32_t i = 2; i < length; i += 2) word[i] = label;
  }
  return words;
}

}  // namespace

void check(VkResult result, const char* call) {
  if (result == VK_SUCCESS) return;
  const bool memory = result == VK_ERROR_OUT_OF_DEVICE_MEMORY || result == VK_ERROR_OUT_OF_HOST_MEMORY;
  ::backplane::detail::fail(memory                           ? BP_ERROR_MEMORY
                            : result == VK_ERROR_DEVICE_LOST ? BP_ERROR_DEVICE_LOST
                                                             : BP_ERROR_DEVICE,
                            "minimal: ", call, " failed with code ", static_cast<int>(result));
}

bool Device::has_float64(VkPhysicalDevice physical) {
  VkPhysicalDeviceFeatures features;
  vkGetPhysicalDeviceFeatures(physical, &features);
  return features.shaderFloat64 != 0;
}

std::string Device::shortcoming(VkPhysicalDevice physical) {
  VkPhysicalDeviceProperties properties;
  vkGetPhysicalDeviceProperties(physical, &properties);
  const std::string name = properties.deviceName;
  if (properties.apiVersion < VK_API_VERSION_1_2) return name + " offers less than Vulkan 1.2";
  if (compute_family(physical) == UINT32_MAX) return name + " has no compute queue";
  static constexpr const char* kNames[] = {
      "timelineSemaphore",       "bufferDeviceAddress",     "shaderInt8", "shaderInt16", "shaderInt64",
      "storageBuffer8BitAccess", "storageBuffer16BitAccess"};
  Features offered;
  vkGetPhysicalDeviceFeatures2(physical, &offered.base);
  const auto needed = offered.needed();
  for (size_t i = 0; i < needed.size(); ++i)
    if (*needed[i] == 0) return name + " lacks " + kNames[i];
  return {};
}

Device::Device(VkPhysicalDevice found) : physical(found), family(compute_family(found)), float64(has_float64(found)) {
  const float priority = 1;
  const VkDeviceQueueCreateInfo queues{.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                       .queueFamilyIndex = family,
                                       .queueCount = 1,
                                       .pQueuePriorities = &priority};
  Features features;
  for (VkBool32* feature : features.needed()) *feature = VK_TRUE;
  features.base.features.shaderFloat64 = float64 ? VK_TRUE : VK_FALSE;
  const VkDeviceCreateInfo info{.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                .pNext = &features.base,
                                .queueCreateInfoCount = 1,
                                .pQueueCreateInfos = &queues};
  check(vkCreateDevice(physical, &info, nullptr, &handle), "vkCreateDevice");
  vkGetDeviceQueue(handle, family, 0, &queue);
  const VkPushConstantRange push{VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(uint64_t)};  // the arguments' address
  const VkPipelineLayoutCreateInfo arguments{.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                             .pushConstantRangeCount = 1,
                                             .pPushConstantRanges = &push};
  const VkResult made = vkCreatePipelineLayout(handle, &arguments, nullptr, &layout);
  if (made != VK_SUCCESS) vkDestroyDevice(handle, nullptr);
  check(made, "vkCreatePipelineLayout");
}

Device::~Device() {
  for (const auto& [address, block] : blocks_) destroy(block);
  for (const auto& [shader, pipeline] : pipelines_) vkDestroyPipeline(handle, pipeline, nullptr);
  vkDestroyPipelineLayout(handle, layout, nullptr);
  vkDestroyDevice(handle, nullptr);
}

void Device::bind_memory(Block& block, VkMemoryPropertyFlags kind) {
  VkMemoryRequirements needs;
  vkGetBufferMemoryRequirements(handle, block.buffer, &needs);
  VkPhysicalDeviceMemoryProperties memory;
  vkGetPhysicalDeviceMemoryProperties(physical, &memory);
  uint32_t type = 0;
  const auto fits = [&] {
    return (needs.memoryTypeBits >> type & 1) != 0 && (memory.memoryTypes[type].propertyFlags & kind) == kind;
  };
  while (type < memory.memoryTypeCount && !fits()) ++type;
  BP_CHECK(type < memory.memoryTypeCount, DEVICE, "minimal: the device has no memory with the properties ", kind);
  const VkMemoryAllocateFlagsInfo flags{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                        .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
  const VkMemoryAllocateInfo info{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                  .pNext = &flags,
                                  .allocationSize = needs.size,
                                  .memoryTypeIndex = type};
  check(vkAllocateMemory(handle, &info, nullptr, &block.memory), "vkAllocateMemory");
  check(vkBindBufferMemory(handle, block.buffer, block.memory, 0), "vkBindBufferMemory");
  void* mapped = nullptr;
  if ((kind & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) != 0)
    check(vkMapMemory(handle, block.memory, 0, VK_WHOLE_SIZE, 0, &mapped), "vkMapMemory");
  block.mapped = static_cast<char*>(mapped);
  const VkBufferDeviceAddressInfo asked{.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO, .buffer = block.buffer};
  block.address = vkGetBufferDeviceAddress(handle, &asked);
}

Block Device::make_block(uint64_t size, VkMemoryPropertyFlags kind) {
  Block block;
  block.size = size;
  const VkBufferCreateInfo info{.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                .size = size,
                                .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                                         VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                         VK_BUFFER_USAGE_TRANSFER_DST_BIT};
  check(vkCreateBuffer(handle, &info, nullptr, &block.buffer), "vkCreateBuffer");
  try {
    bind_memory(block, kind);
  } catch (...) {
    destroy(block);
    throw;
  }
  return block;
}

void Device::destroy(const Block& block) {
  vkDestroyBuffer(handle, block.buffer, nullptr);
  vkFreeMemory(handle, block.memory, nullptr);
}

uint64_t Device::allocate(uint64_t size) {
  const Block block = make_block(size, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
  std::lock_guard lock(mutex);
  blocks_.emplace(block.address, block);
  return block.address;
}

void Device::deallocate(uint64_t address) {
  std::lock_guard lock(mutex);
  const auto found = blocks_.find(address);
  BP_CHECK(found != blocks_.end(), VALUE, "minimal: deallocate: found ", address, ", expected the address of a block");
  destroy(found->second);
  blocks_.erase(found);
}

Place Device::place(uint64_t address, uint64_t size) {
  std::lock_guard lock(mutex);
  auto found = blocks_.upper_bound(address);
  const bool known = found != blocks_.begin() && address + size <= (--found)->first + found->second.size;
  BP_CHECK(known, VALUE, "minimal: found the address ", address, ", expected ", size,
           " bytes of a block of this device");
  return {found->second.buffer, address - found->first};
}

VkPipeline Device::pipeline(const Shader& shader) {
  std::lock_guard lock(mutex);
  VkPipeline& made = pipelines_[shader];
  if (made != VK_NULL_HANDLE) return made;
  const std::vector<uint32_t> words = specialised(shader);
  const VkShaderModuleCreateInfo code{.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                      .codeSize = words.size() * sizeof(uint32_t),
                                      .pCode = words.data()};
  VkShaderModule module = VK_NULL_HANDLE;
  check(vkCreateShaderModule(handle, &code, nullptr, &module), "vkCreateShaderModule");
  const VkComputePipelineCreateInfo info{.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
                                         .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                                                   .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                                                   .module = module,
                                                   .pName = "main"},
                                         .layout = layout};
  const VkResult result = vkCreateComputePipelines(handle, VK_NULL_HANDLE, 1, &info, nullptr, &made);
  vkDestroyShaderModule(handle, module, nullptr);
  check(result, "vkCreateComputePipelines");
  return made;
}

}  // namespace minimal
