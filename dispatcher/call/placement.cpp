// The counts of all scopes together, which only grow; a scope reports the difference since it was made.
#include "call/placement.hpp"

#include <map>
#include <tuple>

#include "backplane/placement.hpp"
#include "memory/process/lock.hpp"
#include "registry/held_fast_rows.hpp"

namespace backplane::core {

constinit std::atomic<uint32_t> placement_scopes{0};

namespace {

// By names, which outlive the ops and plugins that had them.
using Key = std::tuple<std::string, std::string, Placed, std::string>;

StaticLock counts_lock{LockRank::kPool};
std::map<Key, uint64_t>& counts() {
  static auto& map = *new std::map<Key, uint64_t>;
  return map;
}

}  // namespace

void note_placement_now(const OpEntry& op, const Device& device, Placed how, const PluginRecord* plugin) {
  Key key{op.record->name, name_of(device), how, plugin ? plugin->name : ""};
  std::lock_guard lock(counts_lock);
  ++counts()[std::move(key)];
}

}  // namespace backplane::core

namespace backplane {

using namespace core;

namespace {

std::vector<Placement> counted() {
  static constexpr const char* kWords[] = {"kernel", "decomposition", "host fallback"};
  std::vector<Placement> rows;
  std::lock_guard lock(counts_lock);
  for (const auto& [key, calls] : counts()) {
    const auto& [op, device, how, plugin] = key;
    rows.push_back({op, device, kWords[static_cast<size_t>(how)], plugin, calls});
  }
  return rows;
}

bool same_place(const Placement& a, const Placement& b) {
  return a.op == b.op && a.device == b.device && a.how == b.how && a.plugin == b.plugin;
}

}  // namespace

PlacementScope::PlacementScope() {
  hold_fast_rows_back(true);
  placement_scopes.fetch_add(1, std::memory_order_relaxed);
  before_ = counted();
}

PlacementScope::~PlacementScope() { end(); }

void PlacementScope::end() {
  if (ended_) return;
  after_ = counted();
  ended_ = true;
  placement_scopes.fetch_sub(1, std::memory_order_relaxed);
  hold_fast_rows_back(false);
}

std::vector<Placement> PlacementScope::rows() const {
  std::vector<Placement> added;
  auto earlier = before_.begin();  // both are in the map's order, and rows only come in between
  for (Placement& row : ended_ ? std::vector(after_) : counted()) {
    if (earlier != before_.end() && same_place(*earlier, row)) row.calls -= (earlier++)->calls;
    if (row.calls > 0) added.push_back(std::move(row));
  }
  return added;
}

}  // namespace backplane
