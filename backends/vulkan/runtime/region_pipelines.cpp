// Making and keeping them; see region_pipelines.hpp.
#include "runtime/region_pipelines.hpp"

#include <algorithm>

#include "runtime/check.hpp"

namespace backplane::vulkan {

void RegionHandles::add(VkPipeline handle) {
  std::lock_guard lock(mutex_);
  handles_.insert(handle);
  ++alive_;
}

void RegionHandles::destroy(VkPipeline handle) noexcept {
  std::lock_guard lock(mutex_);
  if (closed_) return;
  vkDestroyPipeline(device_, handle, nullptr);
  handles_.erase(handle);
  --alive_;
}

void RegionHandles::close() noexcept {
  std::lock_guard lock(mutex_);
  for (VkPipeline handle : handles_) vkDestroyPipeline(device_, handle, nullptr);
  alive_ -= handles_.size();
  closed_ = true;
}

SharedPipeline RegionPipelines::get(std::vector<uint32_t> words, bool full_subgroups, bool& made) {
  std::lock_guard lock(mutex_);
  auto found = pipelines_.find(words);
  made = found == pipelines_.end();
  if (made) {
    SharedPipeline pipeline = make(words, full_subgroups);
    found = pipelines_.emplace(std::move(words), Kept{std::move(pipeline)}).first;
  }
  found->second.asked = ++asked_;
  SharedPipeline pipeline = found->second.pipeline;
  if (made) drop_idle();
  return pipeline;
}

SharedPipeline RegionPipelines::make(const std::vector<uint32_t>& words, bool full_subgroups) {
  VkShaderModuleCreateInfo code{};
  code.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  code.codeSize = words.size() * sizeof(uint32_t);
  code.pCode = words.data();
  VkComputePipelineCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  if (full_subgroups) info.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT_EXT;
  info.stage.pName = "main";
  info.layout = kernels_.layout();
  check(vkCreateShaderModule(device_, &code, nullptr, &info.stage.module), "vkCreateShaderModule");
  VkPipeline pipeline = VK_NULL_HANDLE;
  const VkResult result = vkCreateComputePipelines(device_, kernels_.cache_to_fill(), 1, &info, nullptr, &pipeline);
  vkDestroyShaderModule(device_, info.stage.module, nullptr);
  check(result, "vkCreateComputePipelines");
  try {
    handles_->add(pipeline);
  } catch (...) {
    vkDestroyPipeline(device_, pipeline, nullptr);
    throw;
  }
  return std::make_shared<const RegionPipeline>(handles_, pipeline);
}

// Under the mutex, which all need who take one from the map: what the map alone holds then nobody else comes to hold.
void RegionPipelines::drop_idle() {
  std::vector<ByContent::iterator> idle;
  for (auto at = pipelines_.begin(); at != pipelines_.end(); ++at)
    if (at->second.pipeline.use_count() == 1) idle.push_back(at);
  if (idle.size() <= kMostIdle) return;
  std::sort(idle.begin(), idle.end(), [](auto a, auto b) { return a->second.asked < b->second.asked; });
  for (size_t i = 0; i + kMostIdle < idle.size(); ++i) pipelines_.erase(idle[i]);
}

}  // namespace backplane::vulkan
