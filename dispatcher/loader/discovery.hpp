// Plugins known by their manifests, and opening them when something of theirs is first needed.
//
// Searched, in this order: the folders of BACKPLANE_PLUGIN_PATH (separated by colons), then `backplane/plugins` beside
// libbackplane.so; then what add_plugin_path adds. Of two plugins of one name the first found counts. Any thread may
// call these functions, from inside a plugin's registration too; a plugin that is being opened is not opened again.
// Call them without the registry's lock.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace backplane::core {

// True when a plugin was opened now; false when no manifest names the backend or op, or what names it was opened
// before. Throws Error with the reason when every plugin that names it is refused.
bool open_plugin_for_backend(std::string_view backend);
bool open_plugin_for_op(std::string_view op);
// Those that bring kernels for a backend of another plugin. load_plugin and open_plugin_for_backend do this for what
// they open. A refusal is logged and kept for plugins().
void open_plugins_with_kernels_for(std::string_view backend);
// Opens the plugins whose manifests list `host_backends`; where no manifest does, those that bring any backend.
void open_host_plugin();

// Of loaded plugins, and of plugins that are found and not refused. Opens nothing.
std::vector<std::string> known_backends();

}  // namespace backplane::core
