// The public functions over all plugins: loading by path, and the report of found and loaded plugins.
#include "backplane/plugins.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "loader/discovery.hpp"
#include "loader/load.hpp"
#include "loader/records.hpp"
#include "memory/process/epoch.hpp"
#include "memory/process/plugin_finder.hpp"
#include "memory/process/plugin_record.hpp"
#include "registry/row_targets.hpp"

namespace backplane {
namespace {

using loader::Found;
using loader::State;

const char* state_name(State state) {
  switch (state) {
    case State::kRegistering:
    case State::kLoaded:
      return "loaded";
    case State::kUnloading:
      return "unloading";
    case State::kParked:
      return "parked";
    case State::kClosed:
      return "closed";
    case State::kFailed:
      return "refused";
  }
  return "";
}

std::string manifest_path(const core::PluginRecord& record) {
  for (const auto& entry : loader::found_plugins())
    if (entry->state == Found::State::kOpened && entry->manifest.name == record.name) return entry->manifest.path;
  return "";
}

std::vector<std::string> waits_for(const core::PluginRecord& record) {
  const std::vector<std::string> known = core::plugin_finder.known_backends();
  std::vector<std::string> names;
  for (const core::RowTarget& target : core::row_targets(record))
    if (!target.registered && std::find(known.begin(), known.end(), target.backend) == known.end())
      names.push_back(target.backend);
  return names;
}

PluginInfo info_of(const core::PluginRecord& record) {
  PluginInfo info;
  info.name = record.name;
  info.version = record.version;
  info.path = record.path;
  info.state = state_name(record.state);
  info.why = record.why;
  info.backends = record.backends;
  info.ops = record.ops;
  info.leases = loader::lease_count(record);
  info.manifest = manifest_path(record);
  info.waits_for = waits_for(record);
  return info;
}

PluginInfo info_of(const Found& entry) {
  PluginInfo info;
  info.name = entry.manifest.name;
  info.path = entry.manifest.file;
  info.state = entry.state == Found::State::kRefused ? "refused" : "found";
  info.why = entry.why;
  info.backends = entry.manifest.backends;
  info.ops = entry.manifest.ops;
  info.manifest = entry.manifest.path;
  return info;
}

}  // namespace

PluginInfo load_plugin(const std::string& path) {
  core::PluginRecord& record = loader::load(path);
  std::lock_guard lock(loader::lifecycle_lock());
  loader::mark_opened(record.path);
  const std::vector<std::string> backends = record.backends;
  for (const std::string& backend : backends) core::open_plugins_with_kernels_for(backend);
  return info_of(record);
}

void end_loading() {
  core::Grace running;
  const auto last = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  while (!running.over() && std::chrono::steady_clock::now() < last)
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  for (const core::LockRank rank : {core::LockRank::kLifecycle, core::LockRank::kBackend})
    for (core::Lock* lock = core::first_lock(rank); lock; lock = lock->next()) lock->lock();
}

void abandon_calls() noexcept { core::abandon_calls(); }

std::vector<PluginInfo> plugins() {
  std::lock_guard lock(loader::lifecycle_lock());
  std::vector<PluginInfo> infos;
  for (const core::PluginRecord* record : loader::all_records())
    if (record != core::core_plugin()) infos.push_back(info_of(*record));
  for (const auto& entry : loader::found_plugins())
    if (entry->state == Found::State::kFound || entry->state == Found::State::kRefused)
      infos.push_back(info_of(*entry));
  return infos;
}

}  // namespace backplane
