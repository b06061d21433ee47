// What a device is and can do, as the extension "features" names it. The strings live as long as the object.
#pragma once

#include <vulkan/vulkan.h>

#include <string>

#include "backplane/abi/device_extensions.h"

namespace backplane::vulkan {

struct Facts {
  explicit Facts(VkPhysicalDevice physical);  // throws backplane::Error

  bool integrated, subgroups, float16_arithmetic, int64_atomics, cooperative_matrix, timestamps;
  int64_t subgroup_size, shared_memory, largest_block, vendor_id, device_id;
  std::string type, api_version, driver, driver_version;
};

bool offers_extension(VkPhysicalDevice physical, const char* name);

// A structure of properties that the device fills.
template <class Properties>
Properties properties_of(VkPhysicalDevice physical, VkStructureType type) {
  Properties wanted{};
  wanted.sType = type;
  VkPhysicalDeviceProperties2 properties{};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  properties.pNext = &wanted;
  vkGetPhysicalDeviceProperties2(physical, &properties);
  wanted.pNext = nullptr;
  return wanted;
}

// nullptr past the last.
const char* feature_of(const Facts& facts, uint32_t index);
const char* property_of(const Facts& facts, uint32_t index, bp_value& value);
uint32_t count_of_properties();

}  // namespace backplane::vulkan
