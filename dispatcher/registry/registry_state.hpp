// State that only the registry's own files use: its tables, its lock, and the replaced entries.
//
// `tables` is read by calls without a lock; everything else here is protected by Registry::lock.
#pragma once

#include <array>
#include <map>
#include <optional>

#include "memory/process/lock.hpp"
#include "registry/registry.hpp"

namespace backplane::core {

// What calls read, without a lock and without an initialisation guard.
struct Tables {
  std::atomic<uint32_t> count{0};
  std::array<std::atomic<OpEntry*>, static_cast<size_t>(Role::kCount)> roles{};
  std::array<std::atomic<KeyRecord*>, 64> keys{};
};
extern constinit Tables tables;

struct Registry {
  Lock lock;
  std::map<std::string, uint32_t, std::less<>> by_name;
  uint32_t key_count = 0;
  std::atomic<bool> has_built_ins{false};
  bool making_built_ins = false;  // by the thread that holds the lock
};
Registry& registry();
Registry& ready_registry();  // with the built-in records in it

// Replaced objects that may still be read. Plans are freed once calls have ended; entries too, where only calls, nodes
// and holders point to them (reclaim_replaced). Under the lock.
struct Retired {
  std::vector<std::unique_ptr<const Plan>> plans;  // oldest first
  uint64_t freed = 0;                              // plans that stood before those
  std::vector<std::unique_ptr<OpEntry>> entries;
  // The calls that ran when the first `aged_plans` and `aged_entries` were all that there was.
  std::optional<Grace> grace;
  uint64_t aged_plans = 0;  // counted as `freed`
  size_t aged_entries = 0;
};
Retired& retired();

}  // namespace backplane::core
