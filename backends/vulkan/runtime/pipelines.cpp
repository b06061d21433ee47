// Pipelines and their file; see pipelines.hpp.
//
// The file is backplane/vulkan-<device and driver>.cache in $XDG_CACHE_HOME or ~/.cache; BACKPLANE_VULKAN_CACHE names
// another folder, or, empty, asks for none. Its head must be this device's and this driver's (Vulkan 1.2, "Pipeline
// Cache Header"), else it is passed over and replaced.
#include "runtime/pipelines.hpp"

#include <cstring>
#include <span>

#include "backplane/plugin/cache_file.hpp"
#include "runtime/check.hpp"

namespace backplane::vulkan {
namespace {

struct Words {
  const uint32_t* data;
  size_t bytes;
};

#include "shader_words.inc"

constexpr Words kWords[] = {
#define BACKPLANE_SHADER(name) {k_##name, sizeof(k_##name)},
#include "shader_list.inc"
#undef BACKPLANE_SHADER
};

VkPipelineLayout make_layout(VkDevice device) {
  const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, kPushBytes};
  VkPipelineLayoutCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  info.pushConstantRangeCount = 1;
  info.pPushConstantRanges = &range;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  check(vkCreatePipelineLayout(device, &info, nullptr, &layout), "vkCreatePipelineLayout");
  return layout;
}

std::string cache_file(const VkPhysicalDeviceProperties& properties) {
  const std::filesystem::path folder = plugin::cache_folder("BACKPLANE_VULKAN_CACHE");
  if (folder.empty()) return {};
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string name = "vulkan-";
  for (const uint8_t byte : properties.pipelineCacheUUID) {
    name += kDigits[byte >> 4];
    name += kDigits[byte & 15];
  }
  return folder /
         (name + "-" + std::to_string(properties.vendorID) + "-" + std::to_string(properties.deviceID) + ".cache");
}

bool is_of(std::span<const char> bytes, const VkPhysicalDeviceProperties& properties) {
  VkPipelineCacheHeaderVersionOne header{};
  if (bytes.size() < sizeof(header)) return false;
  std::memcpy(&header, bytes.data(), sizeof(header));
  return header.headerVersion == VK_PIPELINE_CACHE_HEADER_VERSION_ONE && header.vendorID == properties.vendorID &&
         header.deviceID == properties.deviceID &&
         std::memcmp(header.pipelineCacheUUID, properties.pipelineCacheUUID, VK_UUID_SIZE) == 0;
}

}  // namespace

Pipelines::Pipelines(VkPhysicalDevice physical, VkDevice device) : device_(device), layout_(make_layout(device)) {
  read_cache(physical);
}

Pipelines::~Pipelines() {
  if (grown_) write_cache();
  for (const auto& [key, pipeline] : pipelines_) vkDestroyPipeline(device_, pipeline, nullptr);
  for (VkShaderModule module : modules_) vkDestroyShaderModule(device_, module, nullptr);
  vkDestroyPipelineCache(device_, cache_, nullptr);
  vkDestroyPipelineLayout(device_, layout_, nullptr);
}

void Pipelines::read_cache(VkPhysicalDevice physical) {
  VkPhysicalDeviceProperties properties;
  vkGetPhysicalDeviceProperties(physical, &properties);
  file_ = cache_file(properties);
  const std::string bytes = file_.empty() ? std::string() : plugin::read_cache_file(file_);
  VkPipelineCacheCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO;
  if (is_of(bytes, properties)) {
    info.initialDataSize = bytes.size();
    info.pInitialData = bytes.data();
  }
  // Without a cache pipelines are made all the same.
  if (vkCreatePipelineCache(device_, &info, nullptr, &cache_) != VK_SUCCESS) cache_ = VK_NULL_HANDLE;
}

void Pipelines::write_cache() noexcept try {
  size_t size = 0;
  if (file_.empty() || !cache_ || vkGetPipelineCacheData(device_, cache_, &size, nullptr) != VK_SUCCESS) return;
  std::string bytes(size, '\0');
  if (vkGetPipelineCacheData(device_, cache_, &size, bytes.data()) == VK_SUCCESS)
    plugin::write_cache_file(file_, bytes);
} catch (const std::exception&) {
}

VkShaderModule Pipelines::module(Module module) {
  const auto number = static_cast<size_t>(module);
  if (modules_[number]) return modules_[number];
  VkShaderModuleCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  info.codeSize = kWords[number].bytes;
  info.pCode = kWords[number].data;
  check(vkCreateShaderModule(device_, &info, nullptr, &modules_[number]), "vkCreateShaderModule");
  return modules_[number];
}

VkPipeline Pipelines::get(const Shader& shader, bool& made) {
  VkPipeline& pipeline = pipelines_[shader.key()];
  if (pipeline != VK_NULL_HANDLE) return pipeline;
  std::array<uint32_t, 4> values{};
  std::array<VkSpecializationMapEntry, 4> entries{};
  for (uint32_t i = 0; i < 4; ++i) {
    values[i] = shader.constants[i];
    entries[i] = {i, i * uint32_t{sizeof(uint32_t)}, sizeof(uint32_t)};
  }
  const VkSpecializationInfo special{4, entries.data(), sizeof(values), values.data()};
  VkComputePipelineCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module(shader.module);
  info.stage.pName = "main";
  info.stage.pSpecializationInfo = &special;
  info.layout = layout_;
  check(vkCreateComputePipelines(device_, cache_, 1, &info, nullptr, &pipeline), "vkCreateComputePipelines");
  made = grown_ = true;
  return pipeline;
}

}  // namespace backplane::vulkan
