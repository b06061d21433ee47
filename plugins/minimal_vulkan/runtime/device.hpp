// A logical device: its queue, its blocks of memory, and the pipelines of the kernels.
//
// A block's name, which the host keeps as `data`, is its address on the device, so that the host may cut blocks and
// kernels take plain numbers. `mutex` guards the queue, the blocks and the pipelines.
#pragma once

#include <vulkan/vulkan.h>

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backplane/plugin.hpp"

namespace minimal {

// Throws Error with the driver's call and code: BP_ERROR_MEMORY and BP_ERROR_DEVICE_LOST where that was the cause.
void check(VkResult result, const char* call);

struct Block {
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  uint64_t address = 0, size = 0;
  char* mapped = nullptr;  // of staging memory, which the host reaches
};

// Bytes of a block, as copies name them.
struct Place {
  VkBuffer buffer;
  uint64_t offset;
};

// What a pipeline is made for: a shader module, and the constants that shaders/arguments.glsl lists.
struct Shader {
  size_t module;
  std::array<uint32_t, 5> constants;
  auto operator<=>(const Shader&) const = default;
};

class Device {
 public:
  explicit Device(VkPhysicalDevice physical);
  ~Device();  // no stream is left
  Device(const Device&) = delete;

  // What the device lacks for these kernels; empty: nothing.
  static std::string shortcoming(VkPhysicalDevice physical);
  static bool has_float64(VkPhysicalDevice physical);

  uint64_t allocate(uint64_t size);
  void deallocate(uint64_t address);
  Place place(uint64_t address, uint64_t size);
  Block make_block(uint64_t size, VkMemoryPropertyFlags kind);
  void destroy(const Block& block);
  VkPipeline pipeline(const Shader& shader);

  const VkPhysicalDevice physical;
  const uint32_t family;  // of queues
  const bool float64;
  VkDevice handle = VK_NULL_HANDLE;
  VkQueue queue = VK_NULL_HANDLE;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  std::mutex mutex;

 private:
  void bind_memory(Block& block, VkMemoryPropertyFlags kind);

  std::map<uint64_t, Block> blocks_;  // by address
  std::map<Shader, VkPipeline> pipelines_;
};

}  // namespace minimal
