#include "memory/process/plugin_finder.hpp"

namespace backplane::core {

constinit PluginFinder plugin_finder{[](std::string_view) { return false; }, [](std::string_view) { return false; },
                                     [] {}, [] {}, [] { return std::vector<std::string>(); }};
constinit std::atomic<int> plugins_registering{0};

}  // namespace backplane::core
