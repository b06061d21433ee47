// The kernels' pipelines: one per shader module and its constants, made when it is first asked for.
//
// All share one layout: no descriptors, kPushBytes of push constants. What the driver has compiled is kept in a file
// from one process to the next; see pipelines.cpp for where. Guarded by the device's mutex.
#pragma once

#include <vulkan/vulkan.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <unordered_map>

namespace backplane::vulkan {

// The modules that CMakeLists.txt compiles, in its order.
enum class Module : uint8_t {
#define BACKPLANE_SHADER(name) name,
#include "shader_list.inc"
#undef BACKPLANE_SHADER
  kCount
};

// A module with its four specialisation constants; the shader explains them. A fifth is a subgroup's size.
struct Shader {
  Module module;
  std::array<uint8_t, 4> constants{};

  uint64_t key() const {
    uint64_t key = static_cast<uint64_t>(module);
    for (const uint8_t constant : constants) key = key << 8 | constant;
    return key;
  }
};

inline constexpr uint32_t kPushBytes = 128;  // what every Vulkan device offers

class Pipelines {
 public:
  Pipelines(VkPhysicalDevice physical, VkDevice device, uint32_t subgroup_size);  // throws backplane::Error
  ~Pipelines();                                                                   // writes the file
  Pipelines(const Pipelines&) = delete;
  Pipelines& operator=(const Pipelines&) = delete;

  VkPipelineLayout layout() const { return layout_; }
  VkPipeline get(const Shader& shader, bool& made);
  // For pipelines of others, which will be in the file too.
  VkPipelineCache cache_to_fill() {
    grown_ = true;
    return cache_;
  }

 private:
  void read_cache(VkPhysicalDevice physical);
  void write_cache() noexcept;

  VkDevice device_;
  uint32_t subgroup_size_;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkPipelineCache cache_ = VK_NULL_HANDLE;
  std::string file_;  // empty: none
  std::atomic<bool> grown_ = false;
  std::unordered_map<uint64_t, VkPipeline> pipelines_;
};

}  // namespace backplane::vulkan
