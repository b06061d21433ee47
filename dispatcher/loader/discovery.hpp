// Plugins known by their manifests, and opening them when something of theirs is first needed
// (memory/process/plugin_finder.hpp).
//
// Searched are the folders of search_path.hpp, in its order; then what add_plugin_path adds. Of two plugins of one name
// the first found counts. What the user has disabled takes no name, and is loaded by its path alone. Any thread may
// open them, from inside a plugin's registration too; a plugin that is being opened is not opened again.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backplane/error.hpp"
#include "backplane/plugins.hpp"
#include "loader/manifest.hpp"

namespace backplane::core {

// Those that bring kernels for a backend of another plugin. load_plugin and open_plugin_for_backend do this for what
// they open. A refusal is logged and kept for plugins().
void open_plugins_with_kernels_for(std::string_view backend);
}  // namespace backplane::core

namespace backplane::loader {

// Entries are guarded by lifecycle_lock and never removed.
struct Found {
  // kOpened for good, even after an unload: what a user unloads comes back only when a user loads it.
  enum class State : uint8_t { kFound, kOpening, kOpened, kRefused };
  Manifest manifest;
  State state = State::kFound;
  std::string why;  // of a refusal
  bp_status code = BP_ERROR_VERSION;
};

// Searches the folders at the first call.
std::vector<std::unique_ptr<Found>>& found_plugins();
// The entry of a file that was loaded by its path.
void mark_opened(const std::string& real_file);

}  // namespace backplane::loader
