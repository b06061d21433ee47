// The list of plugin records, the lock over it, and the reports of leases. See records.hpp.

#include "loader/records.hpp"

namespace backplane::loader {
namespace {

// Never destroyed: leases may be dropped by static destructors of the program.
struct Records {
  Records() { lock.enlist(core::LockRank::kLifecycle); }

  core::Lock lock;
  std::vector<core::PluginRecord*> list{core::core_plugin()};
};
Records& records() {
  static Records& instance = *new Records;
  return instance;
}
// Made at the library's start, so that no fork meets it half-made.
[[maybe_unused]] Records& made_at_start = records();

}  // namespace

core::Lock& lifecycle_lock() { return records().lock; }

const std::vector<core::PluginRecord*>& all_records() { return records().list; }

core::PluginRecord* find_record(std::string_view name) {
  for (core::PluginRecord* record : records().list)
    if (record->name == name) return record;
  return nullptr;
}

core::PluginRecord* add_record(std::string name) {
  auto* record = new core::PluginRecord;
  record->index = static_cast<uint32_t>(records().list.size());
  record->name = std::move(name);
  records().list.push_back(record);
  return record;
}

core::PluginRecord* record_at_path(std::string_view real_path) {
  for (core::PluginRecord* record : records().list)
    if (!record->path.empty() && record->path == real_path) return record;
  return nullptr;
}

uint64_t lease_count(const core::PluginRecord& record) {
  int64_t count = 0;
  for (uint32_t kind = 0; kind < core::kLeaseKinds; ++kind)
    count += core::lease_count(record, static_cast<core::LeaseKind>(kind));
  return count > 0 ? static_cast<uint64_t>(count) : 0;
}

std::string lease_list(const core::PluginRecord& record) {
  std::string text;
  for (uint32_t kind = 0; kind < core::kLeaseKinds; ++kind)
    if (const int64_t count = core::lease_count(record, static_cast<core::LeaseKind>(kind)); count > 0)
      text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + core::kLeaseNames[kind];
  return text;
}

}  // namespace backplane::loader
