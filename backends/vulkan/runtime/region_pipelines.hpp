// Pipelines of fused regions: one per content of a shader in SPIR-V, kept as long as the device.
//
// What the driver compiled goes to the kernels' cache, so to its file too. Any thread may call; one shader is compiled
// at a time.
#pragma once

#include <map>
#include <mutex>
#include <vector>

#include "runtime/pipelines.hpp"

namespace backplane::vulkan {

class RegionPipelines {
 public:
  RegionPipelines(VkDevice device, Pipelines& kernels) : device_(device), kernels_(kernels) {}
  ~RegionPipelines();
  RegionPipelines(const RegionPipelines&) = delete;
  RegionPipelines& operator=(const RegionPipelines&) = delete;

  VkPipeline get(std::vector<uint32_t> words, bool& made);  // throws backplane::Error

 private:
  VkDevice device_;
  Pipelines& kernels_;
  std::mutex mutex_;
  std::map<std::vector<uint32_t>, VkPipeline> pipelines_;
};

}  // namespace backplane::vulkan
