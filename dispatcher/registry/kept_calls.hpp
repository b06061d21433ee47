// What calls keep of the registry beyond a plan: who keeps something asks whether plans are still those of before, and
// lets go of it when a plugin is to be unloaded.
#pragma once

#include <atomic>
#include <cstdint>

namespace backplane::core {

inline constinit std::atomic<uint64_t> plan_changes{0};  // grows whenever a plan is made anew

// Set by a static initialiser of a part that keeps leases in a cache; nullptr if no part does.
using DropKeptCalls = void (*)();
inline constinit DropKeptCalls drop_kept_calls = nullptr;

}  // namespace backplane::core
