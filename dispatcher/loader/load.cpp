// Loading: manifest, file, table, registration as a transaction. See records.hpp for locks and states.
#include "loader/load.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "backplane/error.hpp"
#include "backplane/log.hpp"
#include "loader/library.hpp"
#include "loader/manifest.hpp"
#include "loader/records.hpp"
#include "loader/trust.hpp"
#include "loader/unload.hpp"
#include "memory/devices/stream.hpp"
#include "memory/process/epoch.hpp"
#include "memory/process/foreign_call.hpp"
#include "memory/process/plugin_finder.hpp"
#include "record/host_table.hpp"
#include "registry/registry.hpp"
#include "registry/withdrawal.hpp"

namespace backplane::loader {
namespace {

namespace fs = std::filesystem;

std::string real_path(const std::string& path) {
  std::error_code error;
  const fs::path found = fs::canonical(path, error);
  BP_CHECK(!error, VALUE, path, ": ", error.message());
  BP_CHECK(fs::is_regular_file(found, error), VALUE, path, ": is not a file; expected a plugin's shared object");
  return found.string();
}

// The manifest beside a file, where one describes it. Others of the folder may be broken: they are not asked for.
std::optional<Manifest> manifest_of(const fs::path& file) {
  const fs::path usual = fs::path(file).replace_extension().concat(kManifestSuffix);
  std::error_code error;
  if (fs::exists(usual, error)) {
    const std::string why = why_untrusted(usual);
    BP_CHECK(why.empty(), VALUE, "manifest ", usual.string(), ": is not read, since others may have written it: ", why);
    Manifest manifest = read_manifest(usual.string());
    if (fs::path(manifest.file).filename() == file.filename()) return manifest;
  }
  for (const std::string& path : manifests_in(file.parent_path().string())) {
    if (!why_untrusted(path).empty()) continue;
    try {
      Manifest manifest = read_manifest(path);
      if (fs::path(manifest.file).filename() == file.filename()) return manifest;
    } catch (const Error&) {
      continue;
    }
  }
  return std::nullopt;
}

void check_manifest(const std::string& path, const std::optional<Manifest>& manifest) {
  if (!manifest) return;
  const std::string why = why_unusable(*manifest);
  BP_CHECK(why.empty(), VERSION, path, ": ", why, " (by its manifest)");
}

const char* state_word(State state) { return state == State::kRegistering ? "being loaded" : "being unloaded"; }

void check_not_busy(const core::PluginRecord& record) {
  BP_CHECK(record.state != State::kRegistering && record.state != State::kUnloading, BUSY, "plugin \"", record.name,
           "\" is ", state_word(record.state), " just now");
}

// The record for a file with this table: the record of its name, if an unloaded plugin left one.
core::PluginRecord& claim_record(const std::string& path, const bp_plugin& table) {
  core::PluginRecord* record = find_record(table.name);
  if (!record) return *add_record(table.name);
  check_not_busy(*record);
  BP_CHECK(record->state != State::kLoaded, VALUE, path, ": the name \"", table.name, "\" is taken by ",
           record->path.empty() ? "the host itself" : "the plugin that was loaded from " + record->path,
           "; unload that one first, or choose another name");
  return *record;
}

bp_status call_register(core::PluginRecord& record) {
  core::cold().error.clear();
  return core::call_foreign(
      "register_all", [&] { return record.table.register_all(record.table.context, &core::host_table, &record); });
}

// What the manifest does not name would be found by nobody who looks before opening, and may be another plugin's.
std::string why_beyond(const core::PluginRecord& record, const std::optional<Manifest>& manifest) {
  if (!manifest) return "";
  const auto beyond = [&](const char* kind, const char* key, const std::vector<std::string>& found,
                          const std::vector<std::string>& named) -> std::string {
    for (const std::string& name : found)
      if (std::find(named.begin(), named.end(), name) == named.end())
        return std::string("it registers the ") + kind + " \"" + name + "\", which its manifest does not name in \"" +
               key + "\"; add it there, or leave it out";
    return "";
  };
  const std::string backend = beyond("backend", "backends", record.backends, manifest->backends);
  return backend.empty() ? beyond("op", "ops", record.ops, manifest->ops) : backend;
}

// While this lives, a thread that finds an entry of the plugin waits for the lock before using it.
struct Registering {
  Registering() { core::plugins_registering.fetch_add(1); }
  ~Registering() { core::plugins_registering.fetch_sub(1); }
  Registering(const Registering&) = delete;
};
// Under the lock: does this very thread register?
bool is_registering() { return core::plugins_registering.load() != 0; }

// All of it or nothing.
void register_all(core::PluginRecord& record, const std::optional<Manifest>& manifest) {
  record.state = State::kRegistering;
  const Registering visible;
  bp_status status = call_register(record);
  if (status == BP_OK) {
    core::cold().error = why_beyond(record, manifest);
    if (!core::cold().error.empty()) status = BP_ERROR_VALUE;
  }
  if (status == BP_OK) {
    record.state = State::kLoaded;
    record.why.clear();
    core::reclaim_replaced();  // the ops of an earlier registration
    return;
  }
  record.why =
      core::cold().error.empty() ? "register_all failed with status " + std::to_string(status) : core::cold().error;
  record.withdrawn = core::withdraw(&record);
  record.state = State::kFailed;
  detail::fail(status, record.path, ": ", record.why, "; nothing of plugin \"", record.name, "\" stays registered");
}

core::PluginRecord& load_locked(const std::string& given) {
  const std::string path = real_path(given);
  core::PluginRecord* known = record_at_path(path);
  if (known) check_not_busy(*known);
  if (known && known->state == State::kLoaded) return *known;
  const std::optional<Manifest> manifest = manifest_of(path);
  check_manifest(path, manifest);
  // A parked file is still mapped. It returns its table again, for a new registration.
  Library library;
  const bool parked = known && known->library;
  if (parked)
    library = {known->library, query_table(known->library, path)};
  else
    library = open_library(path);
  core::PluginRecord* record = nullptr;
  try {
    BP_CHECK(!manifest || manifest->name == library.table.name, VALUE, path, ": its name is \"", library.table.name,
             "\" and its manifest says \"", manifest->name, "\"; correct the manifest");
    record = &claim_record(path, library.table);
  } catch (const Error&) {
    if (!parked) close_library(library.handle, path);
    throw;
  }
  record->path = path;
  record->library = library.handle;
  record->table = library.table;
  record->version = library.table.version ? library.table.version : "";
  register_all(*record, manifest);
  if (logs(LogTopic::kLoader)) log_line(LogTopic::kLoader, "plugin " + record->name + ": opened, " + path);
  return *record;
}

// After a failed registration nothing refers to the file, but calls may be running that began between its parts. Where
// the file cannot be released it stays mapped and inert.
void release_failed(const std::string& given) {
  core::PluginRecord* record = nullptr;
  {
    std::lock_guard lock(lifecycle_lock());
    std::error_code error;
    record = record_at_path(fs::canonical(given, error).string());
    if (!record || record->state != State::kFailed || !record->library) return;
    record->state = State::kUnloading;
  }
  try {
    core::drain();
    core::quiesce(record);
    core::free_withdrawn(*record->withdrawn);
    if (lease_count(*record) == 0) return close_or_park(*record, State::kFailed);
  } catch (const Error&) {
    // The caller gets the registration's error.
  }
  std::lock_guard lock(lifecycle_lock());
  record->state = State::kFailed;
}

}  // namespace

void refuse_inside_calls(const char* what) {
  BP_CHECK(!core::thread_state.inside(), BUSY, what, ": called from inside a running call; call it after that returns");
  std::lock_guard lock(lifecycle_lock());
  BP_CHECK(!is_registering(), BUSY, what,
           ": called while a plugin registers; call it after the registration has ended");
}

core::PluginRecord& load_under_lock(const std::string& path) {
  try {
    return load_locked(path);
  } catch (const Error& error) {
    throw Error(error.code(), std::string("load_plugin: ") + error.what());
  }
}

core::PluginRecord& load(const std::string& path) {
  bool outermost = false;
  try {
    std::lock_guard lock(lifecycle_lock());
    outermost = !is_registering() && !core::thread_state.inside();
    return load_under_lock(path);
  } catch (const Error&) {
    // From inside a call, to wait for running calls would be to wait for itself.
    if (outermost) release_failed(path);
    throw;
  }
}

}  // namespace backplane::loader
