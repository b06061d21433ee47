// Unloading: withdraw, let running calls drain, need zero leases, end the streams, stop; then close or park. See
// records.hpp for locks and states. A refusal at any step leaves the plugin registered and working.
#include "loader/unload.hpp"

#include "backplane/error.hpp"
#include "backplane/plugins.hpp"
#include "loader/library.hpp"
#include "loader/load.hpp"
#include "loader/records.hpp"
#include "memory/devices/loss.hpp"
#include "memory/devices/stream.hpp"
#include "memory/process/epoch.hpp"
#include "registry/kept_calls.hpp"
#include "registry/registry.hpp"
#include "registry/withdrawal.hpp"

namespace backplane::loader {
namespace {

core::PluginRecord& loaded_record(std::string_view name) {
  core::PluginRecord* record = find_record(name);
  BP_CHECK(record, VALUE, "unload_plugin: no plugin \"", name, "\" was loaded; plugins() lists those that were");
  BP_CHECK(record->table.register_all || record->state != State::kLoaded, VALUE, "unload_plugin: \"", name,
           "\" is the host itself");
  BP_CHECK(record->state != State::kUnloading && record->state != State::kRegistering, BUSY, "unload_plugin: \"", name,
           "\" is being loaded or unloaded just now");
  BP_CHECK(record->state == State::kLoaded, VALUE, "unload_plugin: plugin \"", name, "\" is not loaded");
  return *record;
}

// Nothing that was recorded ends before its stream does.
void check_work_ends(const core::PluginRecord& record) {
  for (uint32_t i = 0; i < core::backend_count(); ++i) {
    const core::BackendRecord& backend = core::backend_at(i);
    const bool aborts = BP_HAS(&backend.def, bp_backend_def, abort) && backend.def.abort;
    if (backend.owner != &record || aborts) continue;
    for (const auto& device : backend.devices)
      BP_CHECK(!device->hangs, BUSY, "unload_plugin: the work of device ", core::name_of(*device),
               " does not end, and its backend cannot end it (`abort`). Fix: ",
               backend.extensions.reset ? "device.reset() first" : core::kNoReset);
  }
}

void check_leases(const core::PluginRecord& record) {
  BP_CHECK(lease_count(record) == 0, BUSY, "unload_plugin: plugin \"", record.name,
           "\" is in use: ", lease_list(record), "; drop them and ask again");
}

// From the withdrawal to the last moment at which the unload may still be refused.
void detach(core::PluginRecord& record) {
  try {
    core::drain();
    check_leases(record);
    core::quiesce(&record);
    check_leases(record);
  } catch (...) {
    std::lock_guard lock(lifecycle_lock());
    core::restore(*record.withdrawn);
    record.state = State::kLoaded;
    throw;
  }
}

void stop(core::PluginRecord& record) {
  bp_status status = BP_OK;
  try {
    if (record.table.stop) status = record.table.stop(record.table.context);
  } catch (...) {
    status = BP_ERROR_INTERNAL;
  }
  // Its threads may still run, so the file must stay mapped; its registrations are gone all the same.
  if (status != BP_OK) record.table.flags &= ~static_cast<uint32_t>(BP_PLUGIN_UNLOADABLE);
}

}  // namespace

void close_or_park(core::PluginRecord& record, std::optional<State> state) {
  const bool closed = (record.table.flags & BP_PLUGIN_UNLOADABLE) && close_library(record.library, record.path);
  std::lock_guard lock(lifecycle_lock());
  if (closed) {
    record.library = nullptr;
    record.table = {};
  }
  record.state = state.value_or(closed ? State::kClosed : State::kParked);
}

}  // namespace backplane::loader

namespace backplane {

void unload_plugin(std::string_view name) {
  loader::refuse_inside_calls("unload_plugin");
  if (core::drop_kept_calls) core::drop_kept_calls();
  core::PluginRecord* record = nullptr;
  {
    std::lock_guard lock(loader::lifecycle_lock());
    record = &loader::loaded_record(name);
    loader::check_work_ends(*record);
    loader::check_leases(*record);
    record->state = loader::State::kUnloading;
    record->withdrawn = core::withdraw(record);
  }
  loader::detach(*record);
  core::free_withdrawn(*record->withdrawn);
  record->withdrawn.reset();
  loader::stop(*record);
  loader::close_or_park(*record);
}

}  // namespace backplane
