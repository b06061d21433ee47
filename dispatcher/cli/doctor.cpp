// `backplane doctor`: one line per thing that must work, with the fix where it does not.
// `backplane devices`: one line per device.
#include "cli/doctor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <vector>

#include "backplane/device.hpp"
#include "backplane/features.hpp"
#include "backplane/plugins.hpp"
#include "backplane/threads.hpp"

namespace backplane::cli {
namespace {

void line(const char* verdict, const std::string& text) { fmt::print("{:<6}{}\n", verdict, text); }

void check_plugins() {
  for (const PluginFolder& folder : plugin_folders())
    if (!folder.why.empty()) line("warn", fmt::format("{}; BACKPLANE_PLUGIN_PATH names other folders", folder.why));
  for (const PluginInfo& plugin : backplane::plugins())
    for (const std::string& backend : plugin.waits_for)
      line("warn", fmt::format("plugin {} has kernel rows for {}, which no plugin provides", plugin.name, backend));
  for (const PluginInfo& plugin : backplane::plugins())
    if (plugin.state == "refused") line("warn", fmt::format("plugin {} is refused: {}", plugin.name, plugin.why));
}

std::set<std::string> found_backends() {
  std::set<std::string> names;
  for (const PluginInfo& plugin : backplane::plugins()) names.insert(plugin.backends.begin(), plugin.backends.end());
  return names;
}

// Further properties that the backend reports, for example about its optional libraries.
void print_own_properties(bp_device device) {
  static const std::set<std::string> kCommon{"name", "backend", "ordinal", "plugin", "total_memory", "alignment"};
  for (const auto& [name, value] : properties(device))
    if (!kCommon.contains(name))
      line("", std::visit([&, &name = name](const auto& v) { return fmt::format("  {}: {}", name, v); }, value));
}

// Starts every backend that a plugin brings. Returns the errors of those that did not start: a missing driver is not a
// fault.
std::vector<std::string> start_backends() {
  std::vector<std::string> reasons;
  for (const std::string& backend : found_backends()) {
    try {
      parse_device(backend);
    } catch (const Error& error) {
      reasons.push_back(error.what());
    }
  }
  return reasons;
}

int check_devices() {
  int usable = 0;
  for (const std::string& reason : start_backends()) line("warn", reason);
  for (const DeviceInfo& device : devices()) {
    ++usable;
    line("ok", fmt::format("device {}: {}, {} MiB, by plugin {}", device.name, device.description,
                           device.properties.total_memory >> 20, device.plugin));
    line("", fmt::format("  features: {}", fmt::join(features(device.device), " ")));
    print_own_properties(device.device);
  }
  return usable;
}

bool check_default_device() {
  try {
    line("ok", fmt::format("default device: {}", device_name(default_device())));
    return true;
  } catch (const Error& error) {
    line("FAIL", error.what());
    return false;
  }
}

void check_threads() {
  const char* wanted = std::getenv("BACKPLANE_NUM_THREADS");
  if (wanted && std::strtol(wanted, nullptr, 10) < 1)
    line("warn",
         fmt::format("BACKPLANE_NUM_THREADS is \"{}\" and is ignored; expected a number of at least 1", wanted));
  line("ok", fmt::format("threads: {}", get_num_threads()));
}

}  // namespace

int list_devices() {
  for (const std::string& reason : start_backends()) fmt::print(stderr, "{}\n", reason);
  const std::vector<DeviceInfo> found = devices();
  for (const DeviceInfo& device : found)
    fmt::print("{:<12}{}, {} MiB\n", device.name, device.description, device.properties.total_memory >> 20);
  return found.empty() ? 1 : 0;
}

int doctor() {
  line("ok", fmt::format("backplane {}, contract {}.{}", BACKPLANE_VERSION, BP_ABI_MAJOR, BP_ABI_MINOR));
  check_plugins();
  const int usable = check_devices();
  if (usable == 0) line("FAIL", "no device: install a backend plugin, or put its folder on BACKPLANE_PLUGIN_PATH");
  check_threads();
  return usable > 0 && check_default_device() ? 0 : 1;
}

}  // namespace backplane::cli
