// Notes how calls on devices are served, while somebody asks (backplane/placement.hpp).
#pragma once

#include <atomic>

#include "call/dispatch.hpp"

namespace backplane::core {

enum class Placed : uint8_t { kKernel, kDecomposition, kHostFallback };

extern constinit std::atomic<uint32_t> placement_scopes;
void note_placement_now(const OpEntry& op, const Device& device, Placed how, const PluginRecord* plugin);

// Of a call on the slow path; `plugin` is the kernel's.
inline void note_placement(const OpEntry& op, const Device& device, Placed how, const PluginRecord* plugin) {
  if (placement_scopes.load(std::memory_order_relaxed) > 0) [[unlikely]]
    note_placement_now(op, device, how, plugin);
}

}  // namespace backplane::core
