// Memory of devices: statistics, caches, limits, and what a caller reads when there is none left.
//
// What is kept for reuse lies in two places: asynchronous devices' freed blocks in the core, since their tickets decide
// when they may be reused, and all else with the backend. Any thread may call.
#include "memory/memory.hpp"

#include "backplane/device.hpp"
#include "memory/epoch.hpp"
#include "memory/stream.hpp"

namespace backplane::core {
namespace {

// The backend's slot of that name, called; throws where there is none.
template <class Slot, class... Args>
void call_slot(Device& device, Slot bp_backend_def::*slot, size_t end, const char* name, Args... args) {
  const bp_backend_def& def = device.backend->def;
  const bool there = def.header.struct_size >= end && def.*slot;
  BP_CHECK(there, NOT_IMPLEMENTED, name, ": device ", name_of(device), " does not offer it: the table of plugin \"",
           device.backend->owner->name, "\" has no ", name);
  CallGuard guard;
  if (bp_status status = (def.*slot)(def.context, device.ordinal, args...)) throw_device_error(device, status, name);
}
#define BP_SLOT(name) &bp_backend_def::name, offsetof(bp_backend_def, name) + sizeof(bp_backend_def::name), #name

Device& usable_device(bp_device id) {
  Device& device = device_at(id);
  check_usable(device);
  return device;
}

uint64_t kept_by_core(Device& device) {
  std::lock_guard guard(device.lock);
  uint64_t bytes = 0;
  for (const Device::Block& block : device.freed) bytes += block.size;
  return bytes;
}

bp_memory_stats stats_of(Device& device) {
  bp_memory_stats stats{};
  stats.header = BP_HEADER(bp_memory_stats);
  stats.limit = BP_NO_MEMORY_LIMIT;  // of a backend that knows of none
  call_slot(device, BP_SLOT(memory_stats), &stats);
  // What waits here for reuse is in use only as the backend sees it.
  stats.in_use -= std::min(stats.in_use, kept_by_core(device));
  return stats;
}

bool empty_caches(Device& device) {
  const bp_backend_def& def = device.backend->def;
  if (!device.synchronous()) {
    synchronize(device);
    trim_freed(device);
  }
  if (!BP_HAS(&def, bp_backend_def, empty_cache) || !def.empty_cache) return !device.synchronous();
  CallGuard guard;
  return def.empty_cache(def.context, device.ordinal) == BP_OK;
}

// "1234567 bytes (1.2 MiB)"
std::string bytes_text(uint64_t bytes) {
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  std::string text = std::to_string(bytes) + " bytes";
  if (bytes < 1024) return text;
  const int unit = (63 - __builtin_clzll(bytes)) / 10;
  const uint64_t tenths = (bytes >> (10 * unit - 10)) * 10 / 1024;
  return text + " (" + std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " " + kUnits[unit - 1] + ")";
}

std::string usage_text(Device& device) {
  const bp_backend_def& def = device.backend->def;
  if (!BP_HAS(&def, bp_backend_def, memory_stats) || !def.memory_stats) return "";
  const bp_memory_stats stats = stats_of(device);
  const std::string limit =
      stats.limit == BP_NO_MEMORY_LIMIT ? "no limit is set" : "the limit is " + bytes_text(stats.limit);
  return "; " + bytes_text(stats.in_use) + " are in use, " + limit;
}

}  // namespace

void* allocate_again(Device& device, uint64_t size, bp_status status) {
  const bp_backend_def& def = device.backend->def;
  void* data = nullptr;
  if (status == BP_ERROR_MEMORY && empty_caches(device)) {
    CallGuard guard;
    status = def.allocate(def.context, device.ordinal, size, &data);
  }
  if (status == BP_OK) return data;
  if (status != BP_ERROR_MEMORY) throw_device_error(device, status, "allocate");
  const std::string cause = cold().error;
  const std::string usage = usage_text(device);
  cold().error_is_new = false;
  detail::fail(BP_ERROR_MEMORY, "device ", name_of(device), ": found no memory for ", bytes_text(size), usage,
               ", and what was kept for reuse has been given back. Free tensors, work in smaller pieces, or raise the "
               "limit with set_memory_limit (",
               cause, ")");
}

void fail_size(const int64_t* sizes, int32_t ndim, uint64_t item_size) {
  std::string shape;
  for (int32_t i = 0; i < ndim; ++i) shape += (i ? ", " : "") + std::to_string(sizes[i]);
  detail::fail(BP_ERROR_MEMORY, "a tensor of shape (", shape, ndim == 1 ? "," : "", ") with ", item_size,
               " bytes per element has more bytes than 63 bits can count");
}

}  // namespace backplane::core

namespace backplane {

using namespace core;

MemoryStats memory_stats(bp_device id) {
  const bp_memory_stats stats = stats_of(usable_device(id));
  const std::optional<uint64_t> limit =
      stats.limit == BP_NO_MEMORY_LIMIT ? std::nullopt : std::optional<uint64_t>(stats.limit);
  return {stats.in_use, stats.peak, stats.reserved, stats.allocations, stats.cache_hits, limit};
}

void reset_peak_memory_stats(bp_device id) { call_slot(usable_device(id), BP_SLOT(reset_peak_memory_stats)); }

void empty_cache(bp_device id) {
  Device& device = usable_device(id);
  if (device.synchronous()) return call_slot(device, BP_SLOT(empty_cache));
  BP_CHECK(empty_caches(device), INTERNAL, "empty_cache: device ", name_of(device), ": ", cold().error);
}

void set_memory_limit(bp_device id, std::optional<uint64_t> bytes) {
  Device& device = usable_device(id);
  call_slot(device, BP_SLOT(set_memory_limit), bytes.value_or(BP_NO_MEMORY_LIMIT));
  // What is kept would be served without asking whether the limit still allows it.
  if (bytes) empty_caches(device);
}

}  // namespace backplane
