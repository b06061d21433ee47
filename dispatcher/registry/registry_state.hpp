// What the registry's own files share: its tables, its lock, and what it has replaced. For registry.cpp,
// kernel_table.cpp, functionality_keys.cpp and withdrawal.cpp alone.
//
// `tables` is read by calls without a lock; everything else here belongs to whoever holds Registry::lock.
#pragma once

#include <array>
#include <map>
#include <optional>

#include "memory/lock.hpp"
#include "registry/registry.hpp"

namespace backplane::core {

inline constexpr uint32_t kMaxKeys = 60;

// What calls read, without a lock and without an initialisation guard.
struct Tables {
  std::atomic<uint32_t> count{0};
  std::array<std::atomic<OpEntry*>, static_cast<size_t>(Role::kCount)> roles{};
  std::array<std::atomic<KeyRecord*>, kMaxKeys> keys{};
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

// What was replaced and may still be read. Tables are freed once calls have ended; entries too, where only calls, nodes
// and holders point to them (reclaim_replaced). Under the lock.
struct Retired {
  std::vector<std::unique_ptr<const KernelTable>> tables;  // oldest first
  uint64_t freed = 0;                                      // tables that stood before those
  std::vector<std::unique_ptr<OpEntry>> entries;
  // The calls that ran when the first `aged_tables` and `aged_entries` were all that there was.
  std::optional<Grace> grace;
  uint64_t aged_tables = 0;  // counted as `freed`
  size_t aged_entries = 0;
};
Retired& retired();
void free_tables(Retired& old, uint64_t upto);  // counted as Retired::freed

// short_row.cpp: how the fast path may serve an op with this record, and what it reads of the best row on a backend.
ShortWay short_way(const OpRecord& record);
ShortRow short_row(const OpEntry& op, const KernelRow& row, uint32_t backend);

void rebuild_table(OpEntry& entry);
void rebuild_all_tables();

}  // namespace backplane::core
