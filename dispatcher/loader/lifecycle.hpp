// The life of plugins: loading, reviving, unloading, and the list of all records.
//
// One recursive lock guards the records' states and is held while a plugin registers, so that a registration may open
// other plugins. It is never held while calls drain, streams end or a plugin stops; a record in kUnloading keeps others
// off meanwhile. Lock order: this lock, then the registry's. Records are never freed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "memory/lock.hpp"
#include "memory/plugin_record.hpp"

namespace backplane::loader {

using State = bp_plugin_record::State;

core::Lock& lifecycle_lock();

// Under the lock.
const std::vector<core::PluginRecord*>& all_records();
core::PluginRecord* find_record(std::string_view name);  // nullptr: none
core::PluginRecord* add_record(std::string name);
core::PluginRecord* record_at_path(std::string_view real_path);  // the one that was last loaded from there

// Loads the file, its manifest checked first, or returns the record of one that is loaded. Takes the lock. Throws
// Error("load_plugin: ..."); then nothing of the plugin is registered, and its file is closed where that is allowed.
core::PluginRecord& load(const std::string& path);
// The same with the lock held: after a failed registration the file stays mapped, since calls cannot drain here.
core::PluginRecord& load_under_lock(const std::string& path);

// Throws Error(BP_ERROR_BUSY) while `what` may not run: inside a call, or while a plugin registers on this thread.
void refuse_inside_calls(const char* what);

// A record whose rows are withdrawn, and which no call, lease or thread uses: closes its file where that is allowed.
// Without the lock. Sets the state to kClosed or kParked.
void close_or_park(core::PluginRecord& record);

// "3 tensor storages, 1 op handles"; "" without leases.
std::string lease_list(const core::PluginRecord& record);
uint64_t lease_count(const core::PluginRecord& record);

}  // namespace backplane::loader
