// Making and keeping them; see region_pipelines.hpp.
#include "runtime/region_pipelines.hpp"

#include "runtime/check.hpp"

namespace backplane::vulkan {

RegionPipelines::~RegionPipelines() {
  for (const auto& [words, pipeline] : pipelines_) vkDestroyPipeline(device_, pipeline, nullptr);
}

VkPipeline RegionPipelines::get(std::vector<uint32_t> words, bool& made) {
  std::lock_guard lock(mutex_);
  if (const auto found = pipelines_.find(words); found != pipelines_.end()) return found->second;
  VkShaderModuleCreateInfo code{};
  code.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  code.codeSize = words.size() * sizeof(uint32_t);
  code.pCode = words.data();
  VkComputePipelineCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.pName = "main";
  info.layout = kernels_.layout();
  check(vkCreateShaderModule(device_, &code, nullptr, &info.stage.module), "vkCreateShaderModule");
  VkPipeline pipeline = VK_NULL_HANDLE;
  const VkResult result = vkCreateComputePipelines(device_, kernels_.cache_to_fill(), 1, &info, nullptr, &pipeline);
  vkDestroyShaderModule(device_, info.stage.module, nullptr);
  check(result, "vkCreateComputePipelines");
  made = true;
  return pipelines_.emplace(std::move(words), pipeline).first->second;
}

}  // namespace backplane::vulkan
