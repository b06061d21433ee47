// Results of Vulkan calls as errors of the contract.
//
// A lost device is fatal, exhausted memory is BP_ERROR_MEMORY (the host then releases its caches and tries
// again), all else leaves the device usable.
#pragma once

#include <vulkan/vulkan.h>

#include "backplane/error.hpp"

namespace backplane::vulkan {

const char* result_name(VkResult result);

// Throws backplane::Error naming the call.
void check(VkResult result, const char* call);

}  // namespace backplane::vulkan
