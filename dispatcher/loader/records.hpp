// The records of all plugins, and the lock of their life.
//
// One recursive lock guards the records' states and is held while a plugin registers, so that a registration may open
// other plugins. It is never held while calls drain, streams end or a plugin stops; a record in kUnloading keeps others
// off meanwhile. Lock order: this lock, then the registry's. Records are never freed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "memory/process/lock.hpp"
#include "memory/process/plugin_record.hpp"

namespace backplane::loader {

using State = bp_plugin_record::State;

core::Lock& lifecycle_lock();

// Under the lock.
const std::vector<core::PluginRecord*>& all_records();
core::PluginRecord* find_record(std::string_view name);  // nullptr: none
core::PluginRecord* add_record(std::string name);
core::PluginRecord* record_at_path(std::string_view real_path);  // the one that was last loaded from there

// "3 tensor storages, 1 autograd nodes"; "" without leases.
std::string lease_list(const core::PluginRecord& record);
uint64_t lease_count(const core::PluginRecord& record);

}  // namespace backplane::loader
