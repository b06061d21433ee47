// Names of Vulkan's results, and their codes in the contract; see check.hpp.
#include "runtime/check.hpp"

namespace backplane::vulkan {

const char* result_name(VkResult result) {
  switch (result) {
    case VK_ERROR_OUT_OF_HOST_MEMORY:
      return "VK_ERROR_OUT_OF_HOST_MEMORY";
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
      return "VK_ERROR_OUT_OF_DEVICE_MEMORY";
    case VK_ERROR_INITIALIZATION_FAILED:
      return "VK_ERROR_INITIALIZATION_FAILED";
    case VK_ERROR_DEVICE_LOST:
      return "VK_ERROR_DEVICE_LOST";
    case VK_ERROR_MEMORY_MAP_FAILED:
      return "VK_ERROR_MEMORY_MAP_FAILED";
    case VK_ERROR_LAYER_NOT_PRESENT:
      return "VK_ERROR_LAYER_NOT_PRESENT";
    case VK_ERROR_EXTENSION_NOT_PRESENT:
      return "VK_ERROR_EXTENSION_NOT_PRESENT";
    case VK_ERROR_FEATURE_NOT_PRESENT:
      return "VK_ERROR_FEATURE_NOT_PRESENT";
    case VK_ERROR_INCOMPATIBLE_DRIVER:
      return "VK_ERROR_INCOMPATIBLE_DRIVER";
    case VK_ERROR_TOO_MANY_OBJECTS:
      return "VK_ERROR_TOO_MANY_OBJECTS";
    default:
      return "a result that Vulkan does not document for it";
  }
}

void check(VkResult result, const char* call) {
  if (result == VK_SUCCESS) return;
  bp_status code = BP_ERROR_DEVICE;
  if (result == VK_ERROR_DEVICE_LOST) code = BP_ERROR_DEVICE_LOST;
  if (result == VK_ERROR_OUT_OF_HOST_MEMORY || result == VK_ERROR_OUT_OF_DEVICE_MEMORY ||
      result == VK_ERROR_TOO_MANY_OBJECTS)  // of allocations: the limit is maxMemoryAllocationCount
    code = BP_ERROR_MEMORY;
  ::backplane::detail::fail(code, "vulkan: ", call, " gave ", result_name(result), " (", static_cast<int>(result), ")");
}

}  // namespace backplane::vulkan
