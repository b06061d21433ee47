// The host's record of a plugin: who owns a registration, and what still points into it.
//
// Records are never freed, so that a lease may be dropped at any time. A lease is held by whatever points into the
// plugin: storages of its devices, autograd nodes with its formulas' native code or its kernels, exported capsules,
// op handles held by Python. The core itself (built-in ops) is record 0 and is never unloaded.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backplane/abi/plugin.h"
#include "core/epoch.hpp"

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

enum class LeaseKind : uint8_t { kStorage, kNode, kCapsule, kHandle };
inline constexpr const char* kLeaseNames[] = {"tensor storages", "autograd nodes", "exported capsules", "op handles"};

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
// dropped, and the sum is never below what is held.
inline int64_t lease_count(const PluginRecord& owner, LeaseKind kind) {
  auto k = static_cast<uint32_t>(kind);
  return owner.leases[k].load(std::memory_order_acquire) +
         (owner.index < kCountedPlugins ? counted_leases(owner.index, k) : 0);
}

// The core's own record, index 0, name "backplane".
PluginRecord* core_plugin();

// registry.cpp. Each verifies, copies and throws Error; a duplicate names both owners. They run under the
// registry's lock, which the loader does not hold.
uint32_t register_op(PluginRecord* owner, const bp_op_def& op);
uint32_t register_backend(PluginRecord* owner, const bp_backend_def& backend);
void register_kernel(PluginRecord* owner, const bp_kernel_def& kernel);
uint32_t register_key(PluginRecord* owner, const bp_key_def& key);
// Takes back everything that `owner` registered: rows vanish, its ops and backends answer with an error that names the
// plugin. Indices stay taken; a later registration of the same name by a plugin of the same name revives them.
// Returns what was taken back.
std::shared_ptr<const Withdrawn> withdraw(PluginRecord* owner);
// Undoes it: an unload that is refused at its end leaves everything as it was.
void restore(const Withdrawn& all);
// After calls have drained: frees the rows and tables that only they could still read.
void free_withdrawn(const Withdrawn& all);
// Before closing: waits for and destroys the streams of its devices, frees cached blocks. Throws while work cannot end.
void quiesce(PluginRecord* owner);

// The table given to plugins; host_table.cpp.
extern const bp_host host_table;

}  // namespace backplane::core
