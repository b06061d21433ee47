// Plugins known by their manifests, and opening them when something of theirs is first needed
// (memory/plugin_finder.hpp).
//
// Searched, in this order: the folders of BACKPLANE_PLUGIN_PATH (separated by colons), then `backplane/plugins` beside
// libbackplane.so; then what add_plugin_path adds. Of two plugins of one name the first found counts. Any thread may
// open them, from inside a plugin's registration too; a plugin that is being opened is not opened again.
#pragma once

#include <string_view>

namespace backplane::core {

// Those that bring kernels for a backend of another plugin. load_plugin and open_plugin_for_backend do this for what
// they open. A refusal is logged and kept for plugins().
void open_plugins_with_kernels_for(std::string_view backend);
}  // namespace backplane::core
