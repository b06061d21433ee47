// Features and properties: what follows from the device table, and what the backend's extension adds.
#include "backplane/features.hpp"

#include <algorithm>

#include "memory/devices/device.hpp"
#include "memory/process/epoch.hpp"
#include "record/dtype_rules.hpp"

namespace backplane {

using namespace core;

namespace {

constexpr uint32_t kMostEntries = 4096;  // of a backend that never ends its list

struct ShortName {
  const char* word;
  bp_dtype dtype;
};
constexpr ShortName kShortNames[] = {
    {"f16", BP_FLOAT16},     {"bf16", BP_BFLOAT16}, {"f32", BP_FLOAT32}, {"f64", BP_FLOAT64}, {"c64", BP_COMPLEX64},
    {"c128", BP_COMPLEX128}, {"i8", BP_INT8},       {"i16", BP_INT16},   {"i32", BP_INT32},   {"i64", BP_INT64},
    {"u8", BP_UINT8},        {"u16", BP_UINT16},    {"u32", BP_UINT32},  {"u64", BP_UINT64}};

struct FlagName {
  const char* word;
  uint32_t flag;
};
constexpr FlagName kFlagNames[] = {{"addressable", BP_BACKEND_ADDRESSABLE},
                                   {"host", BP_BACKEND_HOST_DEVICE},
                                   {"host_memory", BP_BACKEND_HOST_MEMORY},
                                   {"suballocatable", BP_BACKEND_SUBALLOCATABLE},
                                   {"synchronous", BP_BACKEND_SYNCHRONOUS}};

Device& usable(bp_device id) {
  Device& device = device_at(id);
  check_usable(device);
  return device;
}

// Calls f(name) for the words of the backend's own.
template <class F>
void each_own_feature(Device& device, F f) {
  const bp_extension_features* own = device.backend->extensions.features;
  for (uint32_t i = 0; own && i < kMostEntries; ++i) {
    const char* name = nullptr;
    CallGuard guard;
    if (bp_status status = own->feature(device.backend->def.context, device.ordinal, i, &name))
      throw_device_error(device, status, "feature");
    if (!name) return;
    f(name);
  }
}

Property property_of(const Device& device, const char* name, const bp_value& value) {
  switch (value.tag) {
    case BP_TAG_BOOL:
      return value.u.i != 0;
    case BP_TAG_INT:
      return value.u.i;
    case BP_TAG_FLOAT:
      return value.u.f;
    case BP_TAG_STRING:
      return std::string(value.u.s, value.count);
    default:
      detail::fail(BP_ERROR_TYPE, "device ", name_of(device), ": its property \"", name, "\" has the tag ", value.tag,
                   "; expected a bool, int, float or string");
  }
}

}  // namespace

std::vector<std::string> features(bp_device id) {
  Device& device = usable(id);
  std::vector<std::string> found;
  for (bp_dtype dtype = 0; dtype < BP_DTYPE_COUNT; ++dtype)
    if (!(device.properties.lacks & BP_DTYPE_BIT(dtype))) found.emplace_back(kDtypeNames[dtype]);
  for (const FlagName& each : kFlagNames)
    if (device.flags & each.flag) found.emplace_back(each.word);
  each_extension(device.backend->extensions, [&](const char* name, bool offered) {
    if (offered) found.emplace_back(name);
  });
  each_own_feature(device, [&](const char* name) { found.emplace_back(name); });
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

bool has_feature(bp_device id, std::string_view name) {
  Device& device = usable(id);
  for (const ShortName& each : kShortNames)
    if (name == each.word) return !(device.properties.lacks & BP_DTYPE_BIT(each.dtype));
  const std::vector<std::string> all = features(id);
  return std::binary_search(all.begin(), all.end(), name);
}

std::vector<std::pair<std::string, Property>> properties(bp_device id) {
  Device& device = usable(id);
  std::vector<std::pair<std::string, Property>> found{
      {"name", std::string(device.properties.name)},
      {"backend", device.backend->name},
      {"ordinal", static_cast<int64_t>(device.ordinal)},
      {"plugin", device.backend->owner->name},
      {"total_memory", static_cast<int64_t>(device.properties.total_memory)},
      {"alignment", static_cast<int64_t>(device.properties.alignment)},
  };
  const bp_extension_features* own = device.backend->extensions.features;
  for (uint32_t i = 0; own && i < kMostEntries; ++i) {
    const char* name = nullptr;
    bp_value value{};
    CallGuard guard;
    if (bp_status status = own->property(device.backend->def.context, device.ordinal, i, &name, &value))
      throw_device_error(device, status, "property");
    if (!name) break;
    found.emplace_back(name, property_of(device, name, value));
  }
  return found;
}

}  // namespace backplane
