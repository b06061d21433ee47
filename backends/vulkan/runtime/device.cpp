// Making a logical device; see device.hpp. Its memory is in memory.cpp.
#include "runtime/device.hpp"

#include <algorithm>
#include <cstdlib>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/check.hpp"
#include "runtime/features.hpp"
#include "runtime/stream.hpp"

namespace backplane::vulkan {
namespace {

constexpr uint32_t kNoFamily = UINT32_MAX;

std::vector<VkQueueFamilyProperties> families_of(VkPhysicalDevice physical) {
  uint32_t count = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, families.data());
  return families;
}

uint32_t compute_family(VkPhysicalDevice physical) {
  const std::vector<VkQueueFamilyProperties> families = families_of(physical);
  for (uint32_t i = 0; i < families.size(); ++i)
    if (families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) return i;
  return kNoFamily;
}

// The features of a device, in the chain that Vulkan asks for.
struct Features {
  VkPhysicalDeviceFeatures2 base{};
  VkPhysicalDeviceVulkan11Features in11{};
  VkPhysicalDeviceVulkan12Features in12{};

  Features() {
    base.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    in11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
    in12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    base.pNext = &in11;
    in11.pNext = &in12;
  }
  Features(const Features&) = delete;
};

struct Need {
  const char* name;
  VkBool32& (*of)(Features&);
};

// Without these no kernel runs; float64 is beyond them.
#define BACKPLANE_NEED(part, name)                               \
  {                                                              \
#name, [](Features & f) -> VkBool32& { return f.part.name; } \
  }
constexpr Need kNeeds[] = {
    BACKPLANE_NEED(in12, timelineSemaphore),        BACKPLANE_NEED(in12, bufferDeviceAddress),
    BACKPLANE_NEED(in12, hostQueryReset),           BACKPLANE_NEED(base.features, shaderInt64),
    BACKPLANE_NEED(base.features, shaderInt16),     BACKPLANE_NEED(in12, shaderInt8),
    BACKPLANE_NEED(in11, storageBuffer16BitAccess), BACKPLANE_NEED(in12, storageBuffer8BitAccess),
};
#undef BACKPLANE_NEED

VkPhysicalDeviceType type_of(VkPhysicalDevice physical) {
  VkPhysicalDeviceProperties properties;
  vkGetPhysicalDeviceProperties(physical, &properties);
  return properties.deviceType;
}

bool is_processor(VkPhysicalDevice physical) { return type_of(physical) == VK_PHYSICAL_DEVICE_TYPE_CPU; }

bool offers_float64(VkPhysicalDevice physical) {
  VkPhysicalDeviceFeatures features;
  vkGetPhysicalDeviceFeatures(physical, &features);
  return features.shaderFloat64;
}

VkPhysicalDeviceSubgroupProperties subgroups_of(VkPhysicalDevice physical) {
  return properties_of<VkPhysicalDeviceSubgroupProperties>(physical,
                                                           VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES);
}

// From an invocation whose number is not a constant in the shader's source.
bool broadcasts(VkPhysicalDevice physical, const VkPhysicalDeviceSubgroupProperties& subgroups) {
  Features offered;
  vkGetPhysicalDeviceFeatures2(physical, &offered.base);
  return offered.in12.subgroupBroadcastDynamicId && (subgroups.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) &&
         (subgroups.supportedOperations & VK_SUBGROUP_FEATURE_BALLOT_BIT);
}

VkPhysicalDeviceSubgroupSizeControlFeaturesEXT full_subgroups() {
  VkPhysicalDeviceSubgroupSizeControlFeaturesEXT features{};
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES_EXT;
  return features;
}

struct DeviceOptions {
  bool float64, broadcasts, shuffles, imports;
};

VkDevice make_device(VkPhysicalDevice physical, uint32_t family, const DeviceOptions& options) {
  const float priority = 1;
  VkDeviceQueueCreateInfo queue{};
  queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue.queueFamilyIndex = family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  Features features;
  for (const Need& need : kNeeds) need.of(features) = VK_TRUE;
  features.base.features.shaderFloat64 = options.float64;
  features.in12.subgroupBroadcastDynamicId = options.broadcasts;
  VkPhysicalDeviceSubgroupSizeControlFeaturesEXT full = full_subgroups();
  full.computeFullSubgroups = VK_TRUE;
  if (options.shuffles) features.in12.pNext = &full;
  VkDeviceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.pNext = &features.base;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  std::vector<const char*> extensions;
  if (options.imports) extensions.push_back(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME);
  if (options.shuffles) extensions.push_back(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);
  info.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  VkDevice device = VK_NULL_HANDLE;
  check(vkCreateDevice(physical, &info, nullptr, &device), "vkCreateDevice");
  return device;
}

}  // namespace

std::string Device::shortcoming(VkPhysicalDevice physical) {
  VkPhysicalDeviceProperties properties;
  vkGetPhysicalDeviceProperties(physical, &properties);
  const std::string name = properties.deviceName;
  if (properties.apiVersion < VK_API_VERSION_1_2) return name + " offers less than Vulkan 1.2";
  if (compute_family(physical) == kNoFamily) return name + " has no compute queue";
  if (properties.limits.maxComputeWorkGroupInvocations < kGroupSize ||
      properties.limits.maxComputeWorkGroupSize[0] < kGroupSize)
    return name + " has workgroups smaller than 256";
  Features offered;
  vkGetPhysicalDeviceFeatures2(physical, &offered.base);
  for (const Need& need : kNeeds)
    if (!need.of(offered)) return name + " lacks " + need.name;
  return {};
}

bp_dtype_mask Device::lacks(VkPhysicalDevice physical) {
  return offers_float64(physical) ? 0 : BP_DTYPE_BIT(BP_FLOAT64) | BP_DTYPE_BIT(BP_COMPLEX128);
}

bool Device::shuffles(VkPhysicalDevice physical) {
  constexpr uint32_t kSmallest = 4;  // of which a workgroup has as many as shaders/region_rows.comp counts
  const VkPhysicalDeviceSubgroupProperties subgroups = subgroups_of(physical);
  if (!(subgroups.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) ||
      !(subgroups.supportedOperations & VK_SUBGROUP_FEATURE_SHUFFLE_BIT) || subgroups.subgroupSize < kSmallest ||
      !offers_extension(physical, VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME))
    return false;
  VkPhysicalDeviceSubgroupSizeControlFeaturesEXT full = full_subgroups();
  Features offered;
  offered.in12.pNext = &full;
  vkGetPhysicalDeviceFeatures2(physical, &offered.base);
  return full.computeFullSubgroups;
}

uint32_t Device::timestamp_bits(VkPhysicalDevice physical) {
  const uint32_t family = compute_family(physical);
  return family == kNoFamily ? 0 : families_of(physical)[family].timestampValidBits;
}

Device::Device(VkPhysicalDevice physical)
    : physical_(physical),
      family_(compute_family(physical)),
      float64_(offers_float64(physical)),
      software_(is_processor(physical) && !std::getenv("BACKPLANE_VULKAN_AS_GPU")),
      unified_(is_processor(physical) || type_of(physical) == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU) {
  if (software_) most_groups_ = 4 * std::max(std::thread::hardware_concurrency(), 1u);
  vkGetPhysicalDeviceMemoryProperties(physical, &memory_);
  const VkPhysicalDeviceSubgroupProperties subgroups = subgroups_of(physical);
  subgroup_size_ = subgroups.subgroupSize;
  blocks_products_ = software_ && broadcasts(physical, subgroups);
  shuffles_ = shuffles(physical);
  imports_ = import_alignment(physical) > 0;
  open();
}

Device::~Device() { close(); }

void Device::open() {
  device_ = make_device(physical_, family_, {float64_, blocks_products_, shuffles_, imports_});
  vkGetDeviceQueue(device_, family_, 0, &queue_);
  try {
    pipelines_ = std::make_unique<Pipelines>(physical_, device_, subgroup_size_);
    region_pipelines_ = std::make_unique<RegionPipelines>(device_, *pipelines_, counts.region_pipelines);
    clock_ = std::make_unique<Clock>(physical_, device_);
  } catch (...) {
    close();
    throw;
  }
}

void Device::close() noexcept {
  streams_.clear();
  for (const auto& [address, block] : blocks_) destroy(block);
  for (const auto& [pages, block] : imported_) destroy(block);
  blocks_.clear();
  imported_.clear();
  clock_.reset();
  region_pipelines_.reset();
  pipelines_.reset();
  if (device_) vkDestroyDevice(std::exchange(device_, VK_NULL_HANDLE), nullptr);
}

void Device::reset() {
  close();
  reserved_ = peak_ = 0;
  open();
}

Stream& Device::make_stream() {
  auto made = std::make_unique<Stream>(*this);
  Stream& stream = *made;
  std::lock_guard lock(mutex);
  streams_.emplace(&stream, std::move(made));
  return stream;
}

void Device::destroy_stream(Stream& stream) {
  std::unique_ptr<Stream> ends;  // after the mutex, which it takes
  std::lock_guard lock(mutex);
  const auto found = streams_.find(&stream);
  ends = std::move(found->second);
  streams_.erase(found);
}

VkPipeline Device::pipeline(const Shader& shader) {
  std::lock_guard lock(mutex);
  bool made = false;
  const VkPipeline pipeline = pipelines_->get(shader, made);
  if (made) ++counts.objects;
  return pipeline;
}

SharedPipeline Device::pipeline(std::vector<uint32_t> words, bool full_subgroups) {
  bool made = false;
  SharedPipeline pipeline = region_pipelines_->get(std::move(words), full_subgroups, made);
  if (made) ++counts.objects;
  return pipeline;
}

}  // namespace backplane::vulkan
