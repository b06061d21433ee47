// Pipelines of fused regions, one per content of a shader in SPIR-V.
//
// The code that runs one holds it, and so does each batch until it has ended. The last kMostIdle others are kept
// for reuse. The driver's compiled code goes to the kernels' cache, and to its file. Any thread may call; one
// shader is compiled at a time.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "runtime/pipelines.hpp"

namespace backplane::vulkan {

// All handles. They end with the device, even if a pipeline is still held.
class RegionHandles {
 public:
  RegionHandles(VkDevice device, std::atomic<uint64_t>& alive) : device_(device), alive_(alive) {}
  RegionHandles(const RegionHandles&) = delete;
  RegionHandles& operator=(const RegionHandles&) = delete;

  void add(VkPipeline handle);
  void destroy(VkPipeline handle) noexcept;
  void close() noexcept;  // destroys all, of a device that ends
  bool closed() const { return closed_; }

 private:
  VkDevice device_;
  std::atomic<uint64_t>& alive_;
  std::atomic<bool> closed_ = false;
  std::mutex mutex_;  // guards what follows
  std::set<VkPipeline> handles_;
};

class RegionPipeline {
 public:
  RegionPipeline(std::shared_ptr<RegionHandles> handles, VkPipeline handle)
      : handles_(std::move(handles)), handle_(handle) {}
  ~RegionPipeline() { handles_->destroy(handle_); }
  RegionPipeline(const RegionPipeline&) = delete;
  RegionPipeline& operator=(const RegionPipeline&) = delete;

  VkPipeline handle() const { return handle_; }
  bool usable() const { return !handles_->closed(); }

 private:
  std::shared_ptr<RegionHandles> handles_;
  VkPipeline handle_;
};
using SharedPipeline = std::shared_ptr<const RegionPipeline>;

class RegionPipelines {
 public:
  static constexpr size_t kMostIdle = 32;

  // `alive` counts them, and outlives this.
  RegionPipelines(VkDevice device, Pipelines& kernels, std::atomic<uint64_t>& alive)
      : device_(device), kernels_(kernels), handles_(std::make_shared<RegionHandles>(device, alive)) {}
  ~RegionPipelines() { handles_->close(); }
  RegionPipelines(const RegionPipelines&) = delete;
  RegionPipelines& operator=(const RegionPipelines&) = delete;

  // `full_subgroups`: no subgroup lacks an invocation; one shader is asked for in one way. Throws backplane::Error.
  SharedPipeline get(std::vector<uint32_t> words, bool full_subgroups, bool& made);

 private:
  struct Kept {
    SharedPipeline pipeline;
    uint64_t asked = 0;  // the greater, the later
  };
  using ByContent = std::map<std::vector<uint32_t>, Kept>;
  SharedPipeline make(const std::vector<uint32_t>& words, bool full_subgroups);
  void drop_idle();

  VkDevice device_;
  Pipelines& kernels_;
  std::shared_ptr<RegionHandles> handles_;
  std::mutex mutex_;  // guards what follows
  ByContent pipelines_;
  uint64_t asked_ = 0;
};

}  // namespace backplane::vulkan
