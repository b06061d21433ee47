// What a graph's steps, which the dispatcher does not see, report to the profile that runs on their thread.
#pragma once

#include <functional>
#include <string>

#include "backplane/abi/base.h"
#include "memory/devices/device.hpp"
#include "memory/process/thread_state.hpp"
#include "registry/functionality_keys.hpp"

namespace backplane::core {

inline bool profile_runs() noexcept { return (thread_state.included_keys & kProfileKey) != 0; }

// Does it want to see the results of every call?
bool profile_observes() noexcept;

struct StepFacts {
  std::string name;    // of the op, or of the region with its ops
  const char* kind;    // "kernel" or "region"
  std::string line;    // file:line of the program; "" unknown
  int64_t bytes = -1;  // read and written; -1 unknown, likewise
  int64_t flops = -1;
};

// Runs the step and notes its times. Throws what the step throws.
bp_status run_profiled(const StepFacts& facts, Device& device, const std::function<bp_status()>& step);

}  // namespace backplane::core
