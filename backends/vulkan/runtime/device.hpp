// One logical device: its queue, its memory and the pipelines of the kernels.
//
// A block's name, which the host keeps as `data`, is its VkBuffer, so that a kernel of another plugin can use it as it
// is. Kernels reach memory by 64-bit address (bufferDeviceAddress), so byte offsets need no alignment beyond the
// element's. Owns all that it makes. `mutex` guards the queue, the blocks and every stream's open batch; waits happen
// outside it.
#pragma once

#include <vulkan/vulkan.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>

#include "backplane/scalar.hpp"

namespace backplane::vulkan {

// The kernels' pipelines, by number; the elementwise ones first, in the order in which elementwise.comp counts them:
// every op of the registry from one or two float32 to a float32.
#define BACKPLANE_NAME(op, function, number) op,
enum class Shader : uint32_t {
  BP_SCALAR_UNARY_float32_float32(BACKPLANE_NAME) BP_SCALAR_BINARY_float32_float32(BACKPLANE_NAME) kMatmul,
  kCount
};
#undef BACKPLANE_NAME

inline constexpr uint32_t kPushBytes = 128;  // what every Vulkan device offers

struct Block {
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  VkDeviceAddress address = 0;
  uint64_t size = 0;
  void* mapped = nullptr;  // of staging blocks
};

struct MemoryUse {
  uint64_t in_use = 0;
  uint64_t peak = 0;
};

class Device {
 public:
  explicit Device(VkPhysicalDevice physical);  // throws backplane::Error
  ~Device();                                   // no stream is left, no work is running
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // Why a physical device cannot serve; empty: it can.
  static std::string shortcoming(VkPhysicalDevice physical);
  static uint64_t total_memory(VkPhysicalDevice physical);

  VkPhysicalDevice physical() const { return physical_; }
  VkDevice handle() const { return device_; }
  VkQueue queue() const { return queue_; }
  uint32_t queue_family() const { return family_; }
  VkPipelineLayout layout() const { return layout_; }

  // Under the mutex. A pipeline is made when it is first asked for: there are some dozens.
  VkPipeline pipeline(Shader shader);
  VkBuffer allocate(uint64_t size);
  void deallocate(VkBuffer buffer);
  // The block that holds bytes [offset, offset + size); throws Error(BP_ERROR_VALUE) where they do not lie in one.
  const Block& block(const void* data, uint64_t offset, uint64_t size) const;
  Block make_staging(uint64_t size);
  void destroy(const Block& block);
  MemoryUse memory_use() const { return use_; }

  mutable std::mutex mutex;

 private:
  Block make_block(uint64_t size, VkBufferUsageFlags usage, VkMemoryPropertyFlags needed, VkMemoryPropertyFlags liked);
  void bind_memory(Block& block, VkMemoryPropertyFlags needed, VkMemoryPropertyFlags liked, bool addressed);
  uint32_t memory_type(uint32_t allowed, VkMemoryPropertyFlags needed, VkMemoryPropertyFlags liked) const;
  VkPipelineLayout make_layout() const;
  void release() noexcept;

  const VkPhysicalDevice physical_;
  VkPhysicalDeviceMemoryProperties memory_{};
  uint32_t family_ = 0;
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkPipeline pipelines_[static_cast<uint32_t>(Shader::kCount)] = {};
  std::unordered_map<VkBuffer, Block> blocks_;
  MemoryUse use_;
};

}  // namespace backplane::vulkan
