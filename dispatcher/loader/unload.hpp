// Closing what no longer runs.
#pragma once

#include <optional>

#include "memory/process/plugin_record.hpp"

namespace backplane::loader {

// A record whose rows are withdrawn, and which no call, lease or thread uses: closes its file where that is allowed.
// Without the lock. Sets the state: to kClosed or kParked, or to `state`, in the moment in which others may have the
// record again.
void close_or_park(core::PluginRecord& record, std::optional<core::PluginRecord::State> state = std::nullopt);

}  // namespace backplane::loader
