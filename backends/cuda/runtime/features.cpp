// Attributes of the driver by the words of the contract; see features.hpp.
#include "runtime/features.hpp"

#include "backplane/plugin/device_properties.hpp"
#include "libraries/libraries.hpp"

namespace backplane::cuda {
namespace {

int attribute_of(const Driver& driver, driver::Device device, int attribute) {
  int value = 0;
  check(driver.cuDeviceGetAttribute(&value, attribute, device), "cuDeviceGetAttribute");
  return value;
}

std::string with_point(int major, int minor) { return std::to_string(major) + "." + std::to_string(minor); }

std::string driver_version_of(const Driver& driver) {
  int version = 0;
  check(driver.cuDriverGetVersion(&version), "cuDriverGetVersion");
  return with_point(version / 1000, version % 1000 / 10);
}

std::string bus_of(const Driver& driver, driver::Device device) {
  char text[32] = {};
  check(driver.cuDeviceGetPCIBusId(text, sizeof text, device), "cuDeviceGetPCIBusId");
  return text;
}

// CUDA C++ Programming Guide, "Compute Capabilities": from which one on the units are there.
struct Feature {
  const char* word;
  bool (*has)(const Facts& facts);
};
constexpr Feature kWords[] = {{"cooperative_launch", [](const Facts& facts) { return facts.cooperative_launch; }},
                              {"managed_memory", [](const Facts& facts) { return facts.managed_memory; }},
                              {"subgroups", [](const Facts&) { return true; }},
                              {"tensor_cores", [](const Facts& facts) { return facts.capability >= 70; }},
                              {"tensor_cores_bf16", [](const Facts& facts) { return facts.capability >= 80; }},
                              {"tensor_cores_f8", [](const Facts& facts) { return facts.capability >= 89; }}};

constexpr plugin::DeviceProperty<Facts> kProperties[] = {
    {"compute_capability", plugin::property<&Facts::capability_name>},
    {"driver_version", plugin::property<&Facts::driver_version>},
    {"integrated", plugin::property<&Facts::integrated>},
    {"l2_cache", plugin::property<&Facts::cache_size>},
    {"multiprocessors", plugin::property<&Facts::multiprocessors>},
    {"pci_bus", plugin::property<&Facts::bus>},
    {"shared_memory_per_block", plugin::property<&Facts::shared_memory_per_block>},
    {"subgroup_size", plugin::property<&Facts::warp_size>}};

}  // namespace

Facts::Facts(const Driver& driver, driver::Device device)
    : capability(attribute_of(driver, device, driver::kMajor) * 10 + attribute_of(driver, device, driver::kMinor)),
      multiprocessors(attribute_of(driver, device, driver::kMultiprocessors)),
      warp_size(attribute_of(driver, device, driver::kWarpSize)),
      shared_memory_per_block(attribute_of(driver, device, driver::kSharedMemoryPerBlock)),
      cache_size(attribute_of(driver, device, driver::kCacheSize)),
      integrated(attribute_of(driver, device, driver::kIntegrated) != 0),
      managed_memory(attribute_of(driver, device, driver::kManagedMemory) != 0),
      cooperative_launch(attribute_of(driver, device, driver::kCooperativeLaunch) != 0),
      capability_name(with_point(capability / 10, capability % 10)),
      driver_version(driver_version_of(driver)),
      bus(bus_of(driver, device)) {}

const char* feature_of(const Facts& facts, uint32_t index) {
  for (const Feature& one : kWords)
    if (one.has(facts) && index-- == 0) return one.word;
  return nullptr;
}

const char* property_of(const Facts& facts, uint32_t index, bp_value& value) {
  if (index >= std::size(kProperties)) return library_property(index - std::size(kProperties), value);
  kProperties[index].get(facts, value);
  return kProperties[index].name;
}

}  // namespace backplane::cuda
