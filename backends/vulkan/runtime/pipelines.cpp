// Pipelines and their file; see pipelines.hpp.
//
// The file is backplane/vulkan-<device and driver>.cache in $XDG_CACHE_HOME or ~/.cache; BACKPLANE_VULKAN_CACHE names
// another folder, or, empty, asks for none. Its head must be this device's and this driver's (Vulkan 1.2, "Pipeline
// Cache Header"), else it is passed over and replaced.
#include "runtime/pipelines.hpp"

#include <cstring>
#include <filesystem>
#include <map>
#include <span>
#include <vector>

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

// A module with its constants filled in, whose switches on them lead to the chosen case alone, and to the default,
// which later phis may name: a driver that inlines all functions before it knows constants, as lavapipe 22.3
// does, would compile code that never runs. The SPIR-V specification lists the words of an instruction's operands, 3.52
// "Instructions".
std::vector<uint32_t> specialised(const Shader& shader, uint32_t subgroup_size) {
  constexpr uint32_t kSpecConstant = 50, kDecorate = 71, kSwitch = 251, kSpecId = 1, kHeader = 5;
  const Words& module = kWords[static_cast<size_t>(shader.module)];
  std::vector<uint32_t> words(module.data, module.data + module.bytes / sizeof(uint32_t));
  std::map<uint32_t, uint32_t> values;  // by a constant's id; decorations come first
  for (size_t at = kHeader; at < words.size(); at += words[at] >> 16) {
    uint32_t* const word = &words[at];
    const uint32_t opcode = word[0] & 0xffff, length = word[0] >> 16;
    if (opcode == kDecorate && word[2] == kSpecId)
      values[word[1]] = word[3] < shader.constants.size() ? shader.constants[word[3]] : subgroup_size;
    if (opcode == kSpecConstant && values.contains(word[2])) word[3] = values[word[2]];
    if (opcode != kSwitch || !values.contains(word[1])) continue;
    uint32_t chosen = word[2];  // the default
    for (uint32_t k = 3; k + 1 < length; k += 2)
      if (word[k] == values[word[1]]) chosen = word[k + 1];
    for (uint32_t k = 4; k < length; k += 2) word[k] = chosen;
  }
  return words;
}

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

Pipelines::Pipelines(VkPhysicalDevice physical, VkDevice device, uint32_t subgroup_size)
    : device_(device), subgroup_size_(subgroup_size), layout_(make_layout(device)) {
  read_cache(physical);
}

Pipelines::~Pipelines() {
  if (grown_) write_cache();
  for (const auto& [key, pipeline] : pipelines_) vkDestroyPipeline(device_, pipeline, nullptr);
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

VkPipeline Pipelines::get(const Shader& shader, bool& made) {
  VkPipeline& pipeline = pipelines_[shader.key()];
  if (pipeline != VK_NULL_HANDLE) return pipeline;
  const std::vector<uint32_t> words = specialised(shader, subgroup_size_);
  VkShaderModuleCreateInfo code{};
  code.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  code.codeSize = words.size() * sizeof(uint32_t);
  code.pCode = words.data();
  VkComputePipelineCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  check(vkCreateShaderModule(device_, &code, nullptr, &info.stage.module), "vkCreateShaderModule");
  info.stage.pName = "main";
  info.layout = layout_;
  const VkResult result = vkCreateComputePipelines(device_, cache_, 1, &info, nullptr, &pipeline);
  vkDestroyShaderModule(device_, info.stage.module, nullptr);
  check(result, "vkCreateComputePipelines");
  made = grown_ = true;
  return pipeline;
}

}  // namespace backplane::vulkan
