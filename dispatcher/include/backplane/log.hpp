// Reports of what the library decides, one line each on stderr. The environment variable BACKPLANE_LOG selects them.
//
// It is read once, when the library is loaded: a comma-separated list of the topics below, and of at most one severity
// (debug, info, warning, error) for the messages of plugins. Reporting changes no decision. Any thread may call these.
#pragma once

#include <cstdint>
#include <string>

#include "backplane/tensor.hpp"

namespace backplane {

enum class LogTopic : uint32_t {
  kDispatch = 1,  // each call of an op: the fast path or why not, the key, the slot and the row
  kPlan = 2,      // each run of a graph: the plan that answers, or a new one
  kGuard = 4,     // each call of a compiled function: the kept trace that answers, or the guard that failed
  kFuse = 8,      // the regions of a new plan: compiled, or read from a file; the nodes in no region
  kLoader = 16,   // plugins: found, opened, refused
};

// Does BACKPLANE_LOG name the topic?
BACKPLANE_API bool logs(LogTopic topic) noexcept;
// Writes "backplane: TOPIC: TEXT". Callers ask logs() first.
BACKPLANE_API void log_line(LogTopic topic, const std::string& text);
// The least severity (BP_LOG_*) of plugins' messages that is written.
BACKPLANE_API int32_t log_severity() noexcept;

}  // namespace backplane
