// Counts how calls on devices are served: all of them together, and one by one while somebody asks
// (backplane/placement.hpp).
#pragma once

#include <atomic>

#include "call/dispatch.hpp"

namespace backplane::core {

enum class Placed : uint8_t { kKernel, kDecomposition, kHostFallback };

extern constinit std::atomic<uint32_t> placement_scopes;
void note_placement_now(const OpEntry& op, const Device& device, Placed how, const PluginRecord* plugin);

inline void note_placement(const OpEntry& op, const Device& device, Placed how, const PluginRecord* plugin) {
  if (placement_scopes.load(std::memory_order_relaxed) > 0) [[unlikely]]
    note_placement_now(op, device, how, plugin);
}

// Of a call on the slow path; `plugin` is the kernel's.
inline void count_kernel(const OpEntry& op, const Device& device, const PluginRecord* plugin) {
  counters.kernels.store(counters.kernels.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  note_placement(op, device, Placed::kKernel, plugin);
}
inline void count_decomposition(const OpEntry& op, const Device& device) {
  counters.decompositions.fetch_add(1, std::memory_order_relaxed);
  note_placement(op, device, Placed::kDecomposition, nullptr);
}
inline void count_host_fallback(const OpEntry& op, const Device& device) {
  counters.host_fallbacks.fetch_add(1, std::memory_order_relaxed);
  note_placement(op, device, Placed::kHostFallback, nullptr);
}

}  // namespace backplane::core
