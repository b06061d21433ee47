// Pipelines of fused regions, one per content of a shader in SPIR-V.
//
// Who runs one holds it, as does each batch until it has ended; of those that nobody holds the last kMostIdle are kept
// for who asks again. What the driver compiled goes to the kernels' cache, so to its file too. Any thread may call; one
// shader is compiled at a time.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/pipelines.hpp"

namespace backplane::vulkan {

class RegionPipeline {
 public:
  RegionPipeline(VkDevice device, VkPipeline handle, std::atomic<uint64_t>& alive)
      : device_(device), handle_(handle), alive_(alive) {
    ++alive_;
  }
  ~RegionPipeline() {
    vkDestroyPipeline(device_, handle_, nullptr);
    --alive_;
  }
  RegionPipeline(const RegionPipeline&) = delete;
  RegionPipeline& operator=(const RegionPipeline&) = delete;

  VkPipeline handle() const { return handle_; }

 private:
  VkDevice device_;
  VkPipeline handle_;
  std::atomic<uint64_t>& alive_;
};
using SharedPipeline = std::shared_ptr<const RegionPipeline>;

class RegionPipelines {
 public:
  static constexpr size_t kMostIdle = 32;

  // `alive` counts them, and outlives them.
  RegionPipelines(VkDevice device, Pipelines& kernels, std::atomic<uint64_t>& alive)
      : device_(device), kernels_(kernels), alive_(alive) {}
  RegionPipelines(const RegionPipelines&) = delete;
  RegionPipelines& operator=(const RegionPipelines&) = delete;

  SharedPipeline get(std::vector<uint32_t> words, bool& made);  // throws backplane::Error

 private:
  struct Kept {
    SharedPipeline pipeline;
    uint64_t asked = 0;  // the greater, the later
  };
  using ByContent = std::map<std::vector<uint32_t>, Kept>;
  SharedPipeline make(const std::vector<uint32_t>& words);
  void drop_idle();

  VkDevice device_;
  Pipelines& kernels_;
  std::atomic<uint64_t>& alive_;
  std::mutex mutex_;  // guards what follows
  ByContent pipelines_;
  uint64_t asked_ = 0;
};

}  // namespace backplane::vulkan
