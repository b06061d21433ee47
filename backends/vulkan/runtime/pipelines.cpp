// The kernels' pipelines: two shaders, one of them specialised per elementwise op.
//
// All share one layout: no descriptors, kPushBytes of push constants that hold addresses, sizes and strides.
#include "runtime/check.hpp"
#include "runtime/device.hpp"

namespace backplane::vulkan {
namespace {

constexpr uint32_t kElementwise[] =
#include "elementwise.spv.inc"
    ;
constexpr uint32_t kMatmul[] =
#include "matmul.spv.inc"
    ;

template <size_t N>
VkShaderModule make_module(VkDevice device, const uint32_t (&words)[N]) {
  VkShaderModuleCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  info.codeSize = sizeof(words);
  info.pCode = words;
  VkShaderModule module = VK_NULL_HANDLE;
  check(vkCreateShaderModule(device, &info, nullptr, &module), "vkCreateShaderModule");
  return module;
}

// `function` is the shader's specialisation constant 0, for those that have one.
VkResult make_pipeline(VkDevice device, VkPipelineLayout layout, VkShaderModule module, const uint32_t* function,
                       VkPipeline* pipeline) {
  const VkSpecializationMapEntry entry{0, 0, sizeof(uint32_t)};
  const VkSpecializationInfo special{1, &entry, sizeof(uint32_t), function};
  VkComputePipelineCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module;
  info.stage.pName = "main";
  info.stage.pSpecializationInfo = function ? &special : nullptr;
  info.layout = layout;
  return vkCreateComputePipelines(device, VK_NULL_HANDLE, 1, &info, nullptr, pipeline);
}

}  // namespace

VkPipelineLayout Device::make_layout() const {
  const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, kPushBytes};
  VkPipelineLayoutCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  info.pushConstantRangeCount = 1;
  info.pPushConstantRanges = &range;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  check(vkCreatePipelineLayout(device_, &info, nullptr, &layout), "vkCreatePipelineLayout");
  return layout;
}

VkPipeline Device::pipeline(Shader shader) {
  const auto number = static_cast<uint32_t>(shader);
  VkPipeline& pipeline = pipelines_[number];
  if (pipeline != VK_NULL_HANDLE) return pipeline;
  const bool elementwise = shader < Shader::kMatmul;
  const VkShaderModule module = elementwise ? make_module(device_, kElementwise) : make_module(device_, kMatmul);
  const VkResult result = make_pipeline(device_, layout_, module, elementwise ? &number : nullptr, &pipeline);
  vkDestroyShaderModule(device_, module, nullptr);
  check(result, "vkCreateComputePipelines");
  return pipeline;
}

}  // namespace backplane::vulkan
