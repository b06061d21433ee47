// Runs compute shaders for the tests of scalar functions: each line of the standard input is a job, "SPIRV CASE IN OUT
// COUNT".
//
// IN holds three operands of COUNT elements, 16 bytes each; OUT gets the results. The shader reads and writes them
// through four storage buffers: operands at the bindings 0 to 2, results at 3. Prints one line per job. Status 3:
// no device, or it lacks a type.
#include <vulkan/vulkan.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

namespace {

void check(VkResult result, const char* what) {
  if (result == VK_SUCCESS) return;
  std::fprintf(stderr, "%s: VkResult %d\n", what, result);
  std::exit(1);
}
[[noreturn]] void refuse(const char* why) {
  std::fprintf(stderr, "%s\n", why);
  std::exit(3);
}

std::vector<char> read_file(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

struct Gpu {
  VkPhysicalDevice physical = VK_NULL_HANDLE;
  VkDevice device = VK_NULL_HANDLE;
  VkQueue queue = VK_NULL_HANDLE;
  VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  VkDescriptorPool descriptors = VK_NULL_HANDLE;
  VkCommandPool commands = VK_NULL_HANDLE;
  uint32_t memory_type = 0;

  Gpu() {
    VkApplicationInfo app{};
    app.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
    app.apiVersion = VK_API_VERSION_1_2;
    VkInstanceCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
    info.pApplicationInfo = &app;
    VkInstance instance = VK_NULL_HANDLE;
    if (vkCreateInstance(&info, nullptr, &instance) != VK_SUCCESS) refuse("no Vulkan instance");
    uint32_t count = 1;
    vkEnumeratePhysicalDevices(instance, &count, &physical);
    if (count == 0) refuse("no Vulkan device");
    make_device();
    make_layout();
  }

  void make_device() {
    VkPhysicalDeviceVulkan12Features twelve{};
    twelve.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    VkPhysicalDeviceFeatures2 features{};
    features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    features.pNext = &twelve;
    vkGetPhysicalDeviceFeatures2(physical, &features);
    if (!twelve.shaderInt8 || !features.features.shaderInt16 || !features.features.shaderInt64 ||
        !features.features.shaderFloat64)
      refuse("the Vulkan device lacks a type of 8, 16 or 64 bits");
    const float priority = 1;
    VkDeviceQueueCreateInfo queues{};
    queues.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
    queues.queueCount = 1;
    queues.pQueuePriorities = &priority;
    VkDeviceCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
    info.pNext = &features;
    info.queueCreateInfoCount = 1;
    info.pQueueCreateInfos = &queues;
    check(vkCreateDevice(physical, &info, nullptr, &device), "vkCreateDevice");
    vkGetDeviceQueue(device, 0, 0, &queue);
    VkPhysicalDeviceMemoryProperties memory;
    vkGetPhysicalDeviceMemoryProperties(physical, &memory);
    constexpr VkMemoryPropertyFlags kHost = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    while (memory_type < memory.memoryTypeCount && (memory.memoryTypes[memory_type].propertyFlags & kHost) != kHost)
      ++memory_type;
  }

  void make_layout() {
    VkDescriptorSetLayoutBinding bindings[4]{};
    for (uint32_t i = 0; i < 4; ++i)
      bindings[i] = {i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr};
    VkDescriptorSetLayoutCreateInfo sets{};
    sets.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
    sets.bindingCount = 4;
    sets.pBindings = bindings;
    check(vkCreateDescriptorSetLayout(device, &sets, nullptr, &set_layout), "vkCreateDescriptorSetLayout");
    const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, 8};
    VkPipelineLayoutCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
    info.setLayoutCount = 1;
    info.pSetLayouts = &set_layout;
    info.pushConstantRangeCount = 1;
    info.pPushConstantRanges = &range;
    check(vkCreatePipelineLayout(device, &info, nullptr, &layout), "vkCreatePipelineLayout");
    const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 4};
    VkDescriptorPoolCreateInfo pool{};
    pool.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
    pool.maxSets = 1;
    pool.poolSizeCount = 1;
    pool.pPoolSizes = &size;
    check(vkCreateDescriptorPool(device, &pool, nullptr, &descriptors), "vkCreateDescriptorPool");
    VkCommandPoolCreateInfo command_pool{};
    command_pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
    check(vkCreateCommandPool(device, &command_pool, nullptr, &commands), "vkCreateCommandPool");
  }

  VkPipeline pipeline(const std::vector<char>& words) const {
    VkShaderModuleCreateInfo module_info{};
    module_info.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
    module_info.codeSize = words.size();
    module_info.pCode = reinterpret_cast<const uint32_t*>(words.data());
    VkComputePipelineCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
    info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
    info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    info.stage.pName = "main";
    info.layout = layout;
    check(vkCreateShaderModule(device, &module_info, nullptr, &info.stage.module), "vkCreateShaderModule");
    VkPipeline made = VK_NULL_HANDLE;
    check(vkCreateComputePipelines(device, VK_NULL_HANDLE, 1, &info, nullptr, &made), "vkCreateComputePipelines");
    vkDestroyShaderModule(device, info.stage.module, nullptr);
    return made;
  }
};

struct Buffer {
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  void* mapped = nullptr;

  Buffer(const Gpu& gpu, VkDeviceSize size) {
    VkBufferCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
    info.size = size;
    info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
    check(vkCreateBuffer(gpu.device, &info, nullptr, &buffer), "vkCreateBuffer");
    VkMemoryRequirements needs;
    vkGetBufferMemoryRequirements(gpu.device, buffer, &needs);
    VkMemoryAllocateInfo memory_info{};
    memory_info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
    memory_info.allocationSize = needs.size;
    memory_info.memoryTypeIndex = gpu.memory_type;
    check(vkAllocateMemory(gpu.device, &memory_info, nullptr, &memory), "vkAllocateMemory");
    check(vkBindBufferMemory(gpu.device, buffer, memory, 0), "vkBindBufferMemory");
    check(vkMapMemory(gpu.device, memory, 0, VK_WHOLE_SIZE, 0, &mapped), "vkMapMemory");
  }
  void release(const Gpu& gpu) const {
    vkDestroyBuffer(gpu.device, buffer, nullptr);
    vkFreeMemory(gpu.device, memory, nullptr);
  }
};

void dispatch(const Gpu& gpu, VkPipeline pipeline, const std::vector<Buffer>& buffers, uint32_t which, uint32_t count) {
  check(vkResetDescriptorPool(gpu.device, gpu.descriptors, 0), "vkResetDescriptorPool");
  VkDescriptorSetAllocateInfo sets{};
  sets.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
  sets.descriptorPool = gpu.descriptors;
  sets.descriptorSetCount = 1;
  sets.pSetLayouts = &gpu.set_layout;
  VkDescriptorSet set = VK_NULL_HANDLE;
  check(vkAllocateDescriptorSets(gpu.device, &sets, &set), "vkAllocateDescriptorSets");
  for (uint32_t i = 0; i < 4; ++i) {
    const VkDescriptorBufferInfo range{buffers[i].buffer, 0, VK_WHOLE_SIZE};
    VkWriteDescriptorSet write{};
    write.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
    write.dstSet = set;
    write.dstBinding = i;
    write.descriptorCount = 1;
    write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    write.pBufferInfo = &range;
    vkUpdateDescriptorSets(gpu.device, 1, &write, 0, nullptr);
  }
  VkCommandBufferAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  info.commandPool = gpu.commands;
  info.commandBufferCount = 1;
  VkCommandBuffer commands = VK_NULL_HANDLE;
  check(vkAllocateCommandBuffers(gpu.device, &info, &commands), "vkAllocateCommandBuffers");
  VkCommandBufferBeginInfo begin{};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  check(vkBeginCommandBuffer(commands, &begin), "vkBeginCommandBuffer");
  vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
  vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, gpu.layout, 0, 1, &set, 0, nullptr);
  const uint32_t push[] = {which, count};
  vkCmdPushConstants(commands, gpu.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof push, push);
  vkCmdDispatch(commands, (count + 63) / 64, 1, 1);
  check(vkEndCommandBuffer(commands), "vkEndCommandBuffer");
  VkSubmitInfo submit{};
  submit.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  submit.commandBufferCount = 1;
  submit.pCommandBuffers = &commands;
  check(vkQueueSubmit(gpu.queue, 1, &submit, VK_NULL_HANDLE), "vkQueueSubmit");
  check(vkQueueWaitIdle(gpu.queue), "vkQueueWaitIdle");
  vkFreeCommandBuffers(gpu.device, gpu.commands, 1, &commands);
}

}  // namespace

int main() {
  const Gpu gpu;
  std::string shader, last, in, out;
  uint32_t which = 0, count = 0;
  VkPipeline pipeline = VK_NULL_HANDLE;
  while (std::cin >> shader >> which >> in >> out >> count) {
    if (shader != last) {
      vkDestroyPipeline(gpu.device, pipeline, nullptr);
      pipeline = gpu.pipeline(read_file(shader));
      last = shader;
    }
    const std::vector<char> bytes = read_file(in);
    const size_t size = size_t{count} * 16;
    std::vector<Buffer> buffers;
    for (size_t i = 0; i < 4; ++i) buffers.emplace_back(gpu, size);
    for (size_t i = 0; i < 3; ++i) std::memcpy(buffers[i].mapped, bytes.data() + i * size, size);
    dispatch(gpu, pipeline, buffers, which, count);
    std::ofstream(out, std::ios::binary)
        .write(static_cast<const char*>(buffers[3].mapped), static_cast<std::streamsize>(size));
    for (const Buffer& buffer : buffers) buffer.release(gpu);
    std::cout << "done\n" << std::flush;
  }
}
