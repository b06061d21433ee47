// Taking a plugin's registrations out of the registry, and putting them back where its unload did not go through.
#include "registry/withdrawal.hpp"

#include <set>

#include "registry/registry_state.hpp"

namespace backplane::core {

struct Withdrawn {
  PluginRecord* owner;
  std::vector<KeyRecord*> keys;
  std::vector<BackendRecord*> backends;
  std::vector<OpEntry*> ops;
  std::vector<KernelRow*> rows;
  std::vector<OpEntry*> touched;  // whose plans they concern
  uint64_t plans_before = 0;      // the count of all plans retired up to the withdrawal
};

namespace {

// Earlier registrations of the same owner are withdrawn already and stay so.
void collect(Registry& r, Withdrawn& all) {
  const PluginRecord* owner = all.owner;
  for (uint32_t bit = 0; bit < r.key_count; ++bit)
    if (KeyRecord* key = tables.keys[bit].load(std::memory_order_relaxed); key->owner == owner && !key->withdrawn)
      all.keys.push_back(key);
  for (uint32_t i = 0; i < backend_count(); ++i)
    if (BackendRecord& backend = backend_at(i); backend.owner == owner && !backend.withdrawn)
      all.backends.push_back(&backend);
  for (uint32_t i = 0; i < tables.count.load(std::memory_order_relaxed); ++i) {
    OpEntry& entry = *op_entry(i);
    if (entry.owner == owner && !entry.withdrawn) all.ops.push_back(&entry);
    const size_t rows_before = all.rows.size();
    for (auto& row : entry.rows)
      if (row->owner == owner && !row->withdrawn) all.rows.push_back(row.get());
    if (entry.owner == owner || all.rows.size() > rows_before) all.touched.push_back(&entry);
  }
}

// Backends and keys concern the plans of all ops; ops and rows their own.
void rebuild_plans_of(const Withdrawn& all) {
  if (!all.keys.empty() || !all.backends.empty()) return rebuild_all_plans();
  for (OpEntry* entry : all.touched) rebuild_plan(*entry);
}

void mark(const Withdrawn& all, bool withdrawn) {
  for (KeyRecord* key : all.keys) key->withdrawn = withdrawn;
  for (BackendRecord* backend : all.backends) backend->withdrawn = withdrawn;
  for (OpEntry* op : all.ops) op->withdrawn.store(withdrawn, std::memory_order_release);
  for (KernelRow* row : all.rows) row->withdrawn = withdrawn;
  rebuild_plans_of(all);
}

}  // namespace

std::shared_ptr<const Withdrawn> withdraw(PluginRecord* owner) {
  Registry& r = ready_registry();
  std::lock_guard guard(r.lock);
  auto all = std::make_shared<Withdrawn>();
  all->owner = owner;
  collect(r, *all);
  mark(*all, true);
  all->plans_before = retired().freed + retired().plans.size();
  owner->ops.clear();
  owner->backends.clear();
  return all;
}

// `upto`: counted as Retired::freed.
static void free_plans(Retired& old, uint64_t upto) {
  if (upto <= old.freed) return;
  old.plans.erase(old.plans.begin(), old.plans.begin() + static_cast<std::ptrdiff_t>(upto - old.freed));
  old.freed = upto;
}

// Does nothing but calls that have ended point to a replaced entry? Nodes count on its owner.
static bool is_unread(const OpEntry& entry) {
  return !entry.lasting && entry.holds.load(std::memory_order_acquire) == 0 &&
         lease_count(*entry.owner, LeaseKind::kNode) == 0;
}

void reclaim_replaced() {
  std::vector<std::unique_ptr<OpEntry>> gone;  // outlives the guard: what they keep may be Python's
  std::lock_guard guard(ready_registry().lock);
  Retired& old = retired();
  if (old.grace && !old.grace->over()) return;
  free_plans(old, old.aged_plans);
  std::vector<std::unique_ptr<OpEntry>> left;
  for (size_t i = 0; i < old.entries.size(); ++i)
    (i < old.aged_entries && is_unread(*old.entries[i]) ? gone : left).push_back(std::move(old.entries[i]));
  old.entries = std::move(left);
  old.aged_plans = old.freed + old.plans.size();
  old.aged_entries = old.entries.size();
  old.grace.emplace();
}

void free_withdrawn(const Withdrawn& all) {
  std::vector<std::unique_ptr<KernelRow>> gone;  // outlives the guard: what stands in front of a row calls its backend
  std::lock_guard guard(ready_registry().lock);
  free_plans(retired(), all.plans_before);
  const std::set<const KernelRow*> named(all.rows.begin(), all.rows.end());
  for (uint32_t i = 0; i < op_count(); ++i) {
    auto& rows = op_entry(i)->rows;
    for (auto& row : rows)
      if (named.contains(row.get())) gone.push_back(std::move(row));
    std::erase(rows, nullptr);
  }
}

void restore(const Withdrawn& all) {
  std::lock_guard guard(ready_registry().lock);
  mark(all, false);
  for (const OpEntry* op : all.ops) all.owner->ops.emplace_back(op->record->name);
  for (const BackendRecord* backend : all.backends) all.owner->backends.push_back(backend->name);
}

}  // namespace backplane::core
