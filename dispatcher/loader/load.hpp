// Loading and reviving plugins.
#pragma once

#include <string>

#include "memory/process/plugin_record.hpp"

namespace backplane::loader {

// Loads the file, its manifest checked first, or returns the record of one that is loaded. Takes the lock. Throws
// Error("load_plugin: ..."); then nothing of the plugin is registered, and its file is closed where that is allowed.
core::PluginRecord& load(const std::string& path);
// The same with the lock held: after a failed registration the file stays mapped, since calls cannot drain here.
core::PluginRecord& load_under_lock(const std::string& path);

// Throws Error(BP_ERROR_BUSY) while `what` may not run: inside a call, or while a plugin registers on this thread.
void refuse_inside_calls(const char* what);

}  // namespace backplane::loader
