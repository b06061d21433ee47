// Finding the devices; see backend.hpp. The table is in table.cpp.
#include "runtime/backend.hpp"

#include <algorithm>

#include "runtime/check.hpp"

namespace backplane::vulkan {
namespace {

// Real accelerators before software: the lower, the earlier in the order of ordinals.
int rank_of(VkPhysicalDevice physical) {
  VkPhysicalDeviceProperties properties;
  vkGetPhysicalDeviceProperties(physical, &properties);
  switch (properties.deviceType) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
      return 0;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
      return 1;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
      return 2;
    default:
      return 3;
  }
}

VkResult make_instance(VkInstance* instance) {
  uint32_t version = VK_API_VERSION_1_0;
  vkEnumerateInstanceVersion(&version);
  if (version < VK_API_VERSION_1_2) return VK_ERROR_INCOMPATIBLE_DRIVER;
  VkApplicationInfo application{};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.pApplicationName = "backplane";
  application.apiVersion = VK_API_VERSION_1_2;
  VkInstanceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  info.pApplicationInfo = &application;
  return vkCreateInstance(&info, nullptr, instance);
}

}  // namespace

Backend::~Backend() {
  devices_.clear();
  if (instance_) vkDestroyInstance(instance_, nullptr);
}

void Backend::start() {
  if (started_) return;
  started_ = true;
  if (const VkResult result = make_instance(&instance_); result != VK_SUCCESS) {
    reason_ = std::string("no driver: vkCreateInstance gave ") + result_name(result) +
              "; install a Vulkan 1.2 driver (Debian: mesa-vulkan-drivers)";
    return;
  }
  uint32_t count = 0;
  VkResult result = vkEnumeratePhysicalDevices(instance_, &count, nullptr);
  std::vector<VkPhysicalDevice> found(count);
  if (result == VK_SUCCESS) result = vkEnumeratePhysicalDevices(instance_, &count, found.data());
  if (result != VK_SUCCESS) {
    reason_ = std::string("no driver: vkEnumeratePhysicalDevices gave ") + result_name(result);
    return;
  }
  reason_ = "no driver: Vulkan lists no device; install a Vulkan 1.2 driver (Debian: mesa-vulkan-drivers)";
  for (VkPhysicalDevice physical : found) {
    const std::string shortcoming = Device::shortcoming(physical);
    if (shortcoming.empty())
      physical_.push_back(physical);
    else
      reason_ = "no usable device: of the last one listed, " + shortcoming;
  }
  std::stable_sort(physical_.begin(), physical_.end(), [](auto a, auto b) { return rank_of(a) < rank_of(b); });
  devices_.resize(physical_.size());
  facts_.resize(physical_.size());
}

int32_t Backend::count(std::string& reason) {
  std::lock_guard lock(mutex_);
  start();
  reason = reason_;
  return static_cast<int32_t>(physical_.size());
}

VkPhysicalDevice Backend::physical(int32_t ordinal) {
  std::lock_guard lock(mutex_);
  start();
  BP_CHECK(ordinal >= 0 && static_cast<size_t>(ordinal) < physical_.size(), VALUE, "vulkan: no device ", ordinal,
           "; there are ", physical_.size());
  return physical_[static_cast<size_t>(ordinal)];
}

Device& Backend::device(int32_t ordinal) {
  const VkPhysicalDevice found = physical(ordinal);
  std::lock_guard lock(mutex_);
  auto& device = devices_[static_cast<size_t>(ordinal)];
  if (!device) device = std::make_unique<Device>(found);
  return *device;
}

const Device* Backend::started(int32_t ordinal) {
  (void)physical(ordinal);
  std::lock_guard lock(mutex_);
  return devices_[static_cast<size_t>(ordinal)].get();
}

void* Backend::allocate_pinned(uint64_t size) {
  constexpr uint64_t kPage = 4096;
  std::lock_guard lock(mutex_);
  start();
  uint64_t alignment = kPage;  // all are powers of two
  for (VkPhysicalDevice each : physical_) alignment = std::max(alignment, Device::import_alignment(each));
  return pinned_.allocate(size, alignment);
}

void Backend::release_pinned(void* data) {
  std::lock_guard lock(mutex_);
  for (const auto& device : devices_)
    if (device) device->forget(static_cast<const char*>(data));
  pinned_.release(data);
}

const Facts& Backend::facts(int32_t ordinal) {
  const VkPhysicalDevice found = physical(ordinal);
  std::lock_guard lock(mutex_);
  auto& facts = facts_[static_cast<size_t>(ordinal)];
  if (!facts) facts = std::make_unique<Facts>(found);
  return *facts;
}

}  // namespace backplane::vulkan
