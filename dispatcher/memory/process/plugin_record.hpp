// The host's record of a plugin: who owns a registration, and what still points into it.
//
// Records are never freed, so that a lease may be dropped at any time. A lease is held by whatever points into the
// plugin: storages of its devices, autograd nodes with its formulas' native code or its kernels, exported capsules,
// graphs with its ops, and their compiled code. The core itself (built-in ops) is record 0 and is never unloaded.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backplane/abi/plugin.h"
#include "memory/process/epoch.hpp"

namespace backplane::core {
struct Withdrawn;
}

struct bp_plugin_record {
  enum class State : uint8_t { kRegistering, kLoaded, kUnloading, kParked, kClosed, kFailed };
  uint32_t index = 0;
  State state = State::kRegistering;
  std::string name;
  std::string version;
  std::string path;
  std::string why;                                              // it could not be registered
  std::shared_ptr<const backplane::core::Withdrawn> withdrawn;  // what the last unload or failure took back
  void* library = nullptr;                                      // dlopen's handle
  bp_plugin table{};
  std::vector<std::string> backends;  // full names of what it registered, for reports
  std::vector<std::string> ops;
  // By LeaseKind; only of plugins beyond those that threads count for themselves.
  std::atomic<int64_t> leases[backplane::core::kLeaseKinds]{};
};

namespace backplane::core {

using PluginRecord = bp_plugin_record;

enum class LeaseKind : uint8_t { kStorage, kNode, kCapsule, kGraph, kStream, kPinned };
inline constexpr const char* kLeaseNames[] = {"tensor storages",
                                              "autograd nodes",
                                              "exported capsules",
                                              "graphs and their compiled code",
                                              "streams, events and recordings",
                                              "blocks of pinned memory"};

inline void add_leases(PluginRecord* owner, LeaseKind kind, int64_t n) {
  auto k = static_cast<uint32_t>(kind);
  if (owner->index < kCountedPlugins) {
    std::atomic<int64_t>& mine = cold().leases[owner->index][k];
    mine.store(mine.load(std::memory_order_relaxed) + n, std::memory_order_release);
  } else {
    owner->leases[k].fetch_add(n, std::memory_order_acq_rel);
  }
}
inline void lease(PluginRecord* owner, LeaseKind kind) { add_leases(owner, kind, 1); }
inline void unlease(PluginRecord* owner, LeaseKind kind) { add_leases(owner, kind, -1); }

// While others take leases the sum may be off; once the plugin is withdrawn and calls have drained, leases are only
// dropped, so the sum is never too small.
inline int64_t lease_count(const PluginRecord& owner, LeaseKind kind) {
  auto k = static_cast<uint32_t>(kind);
  return owner.leases[k].load(std::memory_order_acquire) +
         (owner.index < kCountedPlugins ? counted_leases(owner.index, k) : 0);
}

// The core's own record, index 0, name "backplane".
PluginRecord* core_plugin();

}  // namespace backplane::core
