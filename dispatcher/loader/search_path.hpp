// Where plugins are looked for, and which of them the user has switched off: the environment and the user's files.
//
// Nothing of the environment counts in a program that runs with more rights than its user has (setuid).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace backplane::loader {

// In the order in which they are searched: BACKPLANE_PLUGIN_PATH, `backplane/plugins` beside this library, the user's
// ($XDG_DATA_HOME), the system's ($XDG_DATA_DIRS, /usr/local/lib, /usr/lib). The standard ones need not exist.
struct SearchFolder {
  std::string path;
  bool optional;
};
std::vector<SearchFolder> search_path();

// Why the plugin of that name is not to be found, or "": BACKPLANE_DISABLE_PLUGINS (names or patterns, separated by
// colons), or a line of $XDG_CONFIG_HOME/backplane/disabled_plugins. Read once in a process.
std::string why_disabled(const std::string& name);

}  // namespace backplane::loader
