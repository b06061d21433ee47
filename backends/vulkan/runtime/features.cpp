// Vulkan's properties by the words of the contract; see features.hpp.
#include "runtime/features.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <vector>

#include "backplane/plugin/device_properties.hpp"
#include "runtime/check.hpp"
#include "runtime/device.hpp"

namespace backplane::vulkan {
namespace {

// What a device says of itself, in the chains that Vulkan asks for.
struct Answers {
  VkPhysicalDeviceProperties2 properties{};
  VkPhysicalDeviceVulkan11Properties in11{};
  VkPhysicalDeviceVulkan12Properties in12{};
  VkPhysicalDeviceFeatures2 features{};
  VkPhysicalDeviceVulkan12Features features12{};

  explicit Answers(VkPhysicalDevice physical) {
    properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
    in11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES;
    in12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES;
    properties.pNext = &in11;
    in11.pNext = &in12;
    features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    features12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    features.pNext = &features12;
    vkGetPhysicalDeviceProperties2(physical, &properties);
    vkGetPhysicalDeviceFeatures2(physical, &features);
  }
  Answers(const Answers&) = delete;
};

const char* name_of(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
      return "discrete";
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
      return "integrated";
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
      return "virtual";
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
      return "cpu";
    default:
      return "other";
  }
}

std::string version_of(uint32_t number) {
  return std::to_string(VK_API_VERSION_MAJOR(number)) + "." + std::to_string(VK_API_VERSION_MINOR(number)) + "." +
         std::to_string(VK_API_VERSION_PATCH(number));
}

struct Feature {
  const char* word;
  bool Facts::*has;
};
constexpr Feature kWords[] = {{"cooperative_matrix", &Facts::cooperative_matrix},
                              {"float16_arithmetic", &Facts::float16_arithmetic},
                              {"int64_atomics", &Facts::int64_atomics},
                              {"subgroups", &Facts::subgroups},
                              {"timestamps", &Facts::timestamps}};

constexpr plugin::DeviceProperty<Facts> kProperties[] = {
    {"api_version", plugin::property<&Facts::api_version>},
    {"device_id", plugin::property<&Facts::device_id>},
    {"device_type", plugin::property<&Facts::type>},
    {"driver", plugin::property<&Facts::driver>},
    {"driver_version", plugin::property<&Facts::driver_version>},
    {"integrated", plugin::property<&Facts::integrated>},
    {"largest_block", plugin::property<&Facts::largest_block>},
    {"shared_memory_per_block", plugin::property<&Facts::shared_memory>},
    {"subgroup_size", plugin::property<&Facts::subgroup_size>},
    {"vendor_id", plugin::property<&Facts::vendor_id>}};

}  // namespace

bool offers_extension(VkPhysicalDevice physical, const char* name) {
  uint32_t count = 0;
  check(vkEnumerateDeviceExtensionProperties(physical, nullptr, &count, nullptr),
        "vkEnumerateDeviceExtensionProperties");
  std::vector<VkExtensionProperties> found(count);
  check(vkEnumerateDeviceExtensionProperties(physical, nullptr, &count, found.data()),
        "vkEnumerateDeviceExtensionProperties");
  return std::any_of(found.begin(), found.end(),
                     [&](const VkExtensionProperties& each) { return std::strcmp(each.extensionName, name) == 0; });
}

Facts::Facts(VkPhysicalDevice physical) {
  const Answers found(physical);
  const VkPhysicalDeviceProperties& base = found.properties.properties;
  integrated = base.deviceType == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
  subgroups = (found.in11.subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT) &&
              (found.in11.subgroupSupportedOperations & VK_SUBGROUP_FEATURE_ARITHMETIC_BIT);
  float16_arithmetic = found.features12.shaderFloat16;
  int64_atomics = found.features12.shaderBufferInt64Atomics;
  cooperative_matrix = offers_extension(physical, "VK_KHR_cooperative_matrix");
  timestamps = Device::timestamp_bits(physical) > 0;
  subgroup_size = found.in11.subgroupSize;
  shared_memory = base.limits.maxComputeSharedMemorySize;
  largest_block = static_cast<int64_t>(found.in11.maxMemoryAllocationSize);
  vendor_id = base.vendorID;
  device_id = base.deviceID;
  type = name_of(base.deviceType);
  api_version = version_of(base.apiVersion);
  driver = found.in12.driverName;
  driver_version = found.in12.driverInfo;
}

const char* feature_of(const Facts& facts, uint32_t index) {
  for (const Feature& one : kWords)
    if (facts.*one.has && index-- == 0) return one.word;
  return nullptr;
}

uint32_t count_of_properties() { return static_cast<uint32_t>(std::size(kProperties)); }

const char* property_of(const Facts& facts, uint32_t index, bp_value& value) {
  if (index >= std::size(kProperties)) return nullptr;
  kProperties[index].get(facts, value);
  return kProperties[index].name;
}

}  // namespace backplane::vulkan
