// How plugins that are known by their manifests are opened when something of theirs is first needed: the loader's part,
// which it puts here. Without one nothing is found.
//
// Call these without the registry's lock. `for_backend` and `for_op` are true when a plugin was opened now, and throw
// Error with the reason if every plugin that provides the name is refused.
#pragma once

#include <atomic>
#include <string>
#include <string_view>
#include <vector>

namespace backplane::core {

struct PluginFinder {
  bool (*for_backend)(std::string_view backend);
  bool (*for_op)(std::string_view op);
  void (*for_host)();  // that brings a backend with host memory
  void (*settle)();    // waits while another thread's plugin registers: what it brings counts as a whole
  std::vector<std::string> (*known_backends)();  // of loaded plugins, and of plugins that are found and not refused
};
extern constinit PluginFinder plugin_finder;  // written by a static initialiser
// How many plugins are registering. Greater than 0 as soon as anything of theirs can be seen.
extern constinit std::atomic<int> plugins_registering;

// For a caller that has just found an entry, before using it.
inline void settle_registrations() {
  if (plugins_registering.load(std::memory_order_acquire) != 0) [[unlikely]]
    plugin_finder.settle();
}

}  // namespace backplane::core
