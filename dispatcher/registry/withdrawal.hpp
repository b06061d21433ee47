// Taking a plugin's registrations out of the registry, and what definitions replaced out of memory.
#pragma once

#include <memory>

#include "memory/process/plugin_record.hpp"

namespace backplane::core {

// Takes back everything that `owner` registered: rows vanish, its ops and backends answer with an error that names the
// plugin. Indices stay taken; a later registration of the same name by a plugin of the same name revives them.
// Returns the withdrawn entries.
std::shared_ptr<const Withdrawn> withdraw(PluginRecord* owner);
// Undoes it: an unload that is refused at its end leaves everything as it was.
void restore(const Withdrawn& all);
// After calls have drained: frees the rows and tables that only they could still read.
void free_withdrawn(const Withdrawn& all);

// Frees what definitions have replaced, as far as no call, node or holder reads it any more. Never waits. Without the
// registry's lock.
void reclaim_replaced();

}  // namespace backplane::core
