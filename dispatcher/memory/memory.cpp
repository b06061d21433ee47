// Memory of devices: statistics, caches and limits. Any thread may call.
//
// Cached blocks are in two places: asynchronous devices' freed blocks in the core's pool, since their tickets
// decide when they may be reused, and all else with the backend.
#include "memory/memory.hpp"

#include "backplane/device.hpp"
#include "memory/allocate.hpp"
#include "memory/devices/stream.hpp"
#include "memory/memory_kinds.hpp"
#include "memory/pinned.hpp"
#include "memory/process/epoch.hpp"

namespace backplane::core {
namespace {

template <class Slot>
bool has_slot(const Device& device, Slot bp_backend_def::*slot, size_t end, const char*) {
  const bp_backend_def& def = device.backend->def;
  return def.header.struct_size >= end && def.*slot;
}

// Calls the backend's slot of that name; throws if the table lacks it.
template <class Slot, class... Args>
void call_slot(Device& device, Slot bp_backend_def::*slot, size_t end, const char* name, Args... args) {
  const bp_backend_def& def = device.backend->def;
  BP_CHECK(has_slot(device, slot, end, name), NOT_IMPLEMENTED, name, ": device ", name_of(device),
           " does not offer it: the table of plugin \"", device.backend->owner->name, "\" has no ", name);
  CallGuard guard;
  if (bp_status status = (def.*slot)(def.context, device.ordinal, args...)) throw_device_error(device, status, name);
}
#define BP_SLOT(name) &bp_backend_def::name, offsetof(bp_backend_def, name) + sizeof(bp_backend_def::name), #name

Device& usable_device(bp_device id) {
  Device& device = device_at(id);
  check_usable(device);
  return device;
}

// For an asynchronous device, the pool counts the memory of tensors, and the backend the rest and the limit.
bp_memory_stats stats_of(Device& device) {
  bp_memory_stats stats{};
  stats.header = BP_HEADER(bp_memory_stats);
  stats.limit = BP_NO_MEMORY_LIMIT;  // of a backend that knows of none
  if (device.synchronous()) {
    call_slot(device, BP_SLOT(memory_stats), &stats);
    return stats;
  }
  if (has_slot(device, BP_SLOT(memory_stats))) call_slot(device, BP_SLOT(memory_stats), &stats);
  if (keeps_own_pool(device)) return stats;
  std::lock_guard guard(device.lock);
  take_freed(device);
  const BlockPool& pool = *device.pool;
  stats.limit = device.memory_limit;
  stats.in_use = pool.in_use();
  stats.peak = pool.peak();
  stats.reserved = std::max(stats.reserved, pool.reserved());
  stats.allocations = pool.taken();
  stats.cache_hits = pool.served();
  return stats;
}

}  // namespace

bool empty_caches(Device& device) {
  const bp_backend_def& def = device.backend->def;
  if (!device.synchronous()) {
    synchronize(device);
    empty_pool(device);
    if (device.backend->extensions.memory) {
      std::lock_guard guard(device.lock);
      reclaim_kinds(device);
    }
    if (device.backend->extensions.pinned) empty_pinned(*device.backend);
  }
  if (!has_slot(device, BP_SLOT(empty_cache))) return !device.synchronous();
  CallGuard guard;
  return def.empty_cache(def.context, device.ordinal) == BP_OK;
}

std::string bytes_text(uint64_t bytes) {
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  std::string text = std::to_string(bytes) + " bytes";
  if (bytes < 1024) return text;
  const int unit = (63 - __builtin_clzll(bytes)) / 10;
  const uint64_t tenths = (bytes >> (10 * unit - 10)) * 10 / 1024;
  return text + " (" + std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " " + kUnits[unit - 1] + ")";
}

static bool counts_memory(const Device& device) {
  return !device.synchronous() || has_slot(device, BP_SLOT(memory_stats));
}

bool has_memory_limit(Device& device) { return counts_memory(device) && stats_of(device).limit != BP_NO_MEMORY_LIMIT; }

std::string usage_text(Device& device) {
  if (!counts_memory(device)) return "";
  const bp_memory_stats stats = stats_of(device);
  const std::string limit =
      stats.limit == BP_NO_MEMORY_LIMIT ? "no limit is set" : "the limit is " + bytes_text(stats.limit);
  return "; " + bytes_text(stats.in_use) + " are in use, " + limit;
}

}  // namespace backplane::core

namespace backplane {

using namespace core;

MemoryStats memory_stats(bp_device id) {
  CallGuard call;
  const bp_memory_stats stats = stats_of(usable_device(id));
  const std::optional<uint64_t> limit =
      stats.limit == BP_NO_MEMORY_LIMIT ? std::nullopt : std::optional<uint64_t>(stats.limit);
  return {stats.in_use, stats.peak, stats.reserved, stats.allocations, stats.cache_hits, limit};
}

void reset_peak_memory_stats(bp_device id) {
  CallGuard call;
  Device& device = usable_device(id);
  if (!device.pool) return call_slot(device, BP_SLOT(reset_peak_memory_stats));
  std::lock_guard guard(device.lock);
  device.pool->reset_peak();
}

void empty_cache(bp_device id) {
  CallGuard call;
  Device& device = usable_device(id);
  if (device.synchronous()) return call_slot(device, BP_SLOT(empty_cache));
  BP_CHECK(empty_caches(device), INTERNAL, "empty_cache: device ", name_of(device), ": ", cold().error);
}

void set_memory_limit(bp_device id, std::optional<uint64_t> bytes) {
  CallGuard call;
  Device& device = usable_device(id);
  const uint64_t limit = bytes.value_or(BP_NO_MEMORY_LIMIT);
  if (!device.pool) {
    call_slot(device, BP_SLOT(set_memory_limit), limit);
  } else {
    std::lock_guard guard(device.lock);
    device.memory_limit = limit;
  }
  // A cached block would be returned without a check of the new limit.
  if (bytes) empty_caches(device);
}

}  // namespace backplane
