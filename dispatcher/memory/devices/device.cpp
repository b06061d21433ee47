#include "memory/devices/device.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "backplane/device.hpp"
#include "backplane/placement.hpp"
#include "memory/allocate.hpp"
#include "memory/devices/stream.hpp"
#include "memory/fork.hpp"
#include "memory/process/epoch.hpp"
#include "memory/process/foreign_call.hpp"
#include "memory/process/plugin_finder.hpp"
#include "record/dtype_rules.hpp"
#include "record/foreign_struct.hpp"

namespace backplane::core {
namespace {

constexpr uint32_t kMaxBackends = 4096;

struct Backends {
  std::array<std::atomic<BackendRecord*>, kMaxBackends> records{};
  std::atomic<uint32_t> count{0};
  std::atomic<Device*> host{nullptr};
};
constinit Backends backends;
constinit std::atomic<Device*> started_devices{nullptr};
constinit std::atomic<uint64_t> default_device_id{~uint64_t{0}};
thread_local constinit std::optional<bp_device> device_of_thread;

}  // namespace

bp_dtype_mask plain_dtypes_of(const Device& device) {
  return device.synchronous() && device.properties.alignment <= 1 && !device.properties.lacks ? BP_MASK_ANY : 0;
}

namespace {

// The dtypes that a plugin of that minor can have meant to lack or not.
bp_dtype_mask dtypes_of_minor(uint32_t) {
  static_assert(BP_MASK_ANY == 0x7fff, "a dtype was added: tables of earlier minors do not know it");
  return BP_MASK_ANY;
}

void enlist(Device& device) {
  device.lock.enlist(LockRank::kDevice);
  device.next_started = started_devices.load(std::memory_order_relaxed);
  while (!started_devices.compare_exchange_weak(device.next_started, &device, std::memory_order_release)) {
  }
}

constexpr uint64_t kMaxGranule = 4096;
constexpr uint64_t kBackendFlags = flags_up_to(BP_BACKEND_HOST_DEVICE);

#define BP_SLOT(name) \
  { #name, BP_HAS(&def, bp_backend_def, name) && def.name }
// Before one of them is called.
void check_slots(std::string_view name, const bp_backend_def& def) {
  struct Slot {
    const char* name;
    bool filled;
  };
  for (const Slot& slot :
       {Slot BP_SLOT(device_count), Slot BP_SLOT(properties), Slot BP_SLOT(allocate), Slot BP_SLOT(deallocate),
        Slot BP_SLOT(copy_from_host), Slot BP_SLOT(copy_to_host), Slot BP_SLOT(copy)})
    BP_CHECK(slot.filled, VALUE, "register_backend: \"", name, "\" leaves ", slot.name,
             " empty, which every backend must fill");
  if (def.flags & BP_BACKEND_SYNCHRONOUS) return;
  for (const Slot& slot :
       {Slot BP_SLOT(stream_create), Slot BP_SLOT(stream_destroy), Slot BP_SLOT(flush), Slot BP_SLOT(completed),
        Slot BP_SLOT(wait), Slot BP_SLOT(stream_wait), Slot BP_SLOT(deferred_error)})
    BP_CHECK(slot.filled, VALUE, "register_backend: \"", name, "\" leaves ", slot.name,
             " empty, which a backend that is not BP_BACKEND_SYNCHRONOUS must fill");
}
#undef BP_SLOT

void check_definition(const PluginRecord* owner, const bp_backend_def& def) {
  BP_CHECK(def.name && *def.name, VALUE, "register_backend: plugin \"", owner->name,
           "\" registers a backend without a name");
  const std::string_view name = def.name;
  BP_CHECK(name.find_first_of(":* \t\n\"") == std::string_view::npos && name.size() <= 64, VALUE,
           "register_backend: the name \"", name.substr(0, 64),
           "\" must have at most 64 characters, and none of : * \" and blanks");
  check_flags(def.flags, kBackendFlags, BP_HINTS_OF_32, "register_backend: \"", name, "\"");
  constexpr uint32_t kHost = BP_BACKEND_HOST_MEMORY | BP_BACKEND_SYNCHRONOUS;
  BP_CHECK(!(def.flags & BP_BACKEND_HOST_DEVICE) || (def.flags & kHost) == kHost, VALUE, "register_backend: \"", name,
           "\" is BP_BACKEND_HOST_DEVICE, which needs BP_BACKEND_HOST_MEMORY and BP_BACKEND_SYNCHRONOUS");
  BP_CHECK(!(def.flags & BP_BACKEND_HOST_MEMORY) || (def.flags & BP_BACKEND_ADDRESSABLE), VALUE, "register_backend: \"",
           name,
           "\" is BP_BACKEND_HOST_MEMORY, which the host reads at data + offset: it needs BP_BACKEND_ADDRESSABLE");
  check_slots(name, def);
}

void check_properties(const BackendRecord& backend, int32_t ordinal, bp_device_properties& found) {
  found.name[sizeof found.name - 1] = 0;
  found.lacks = mask_of(found.lacks, found.only_holds) | (~dtypes_of_minor(backend.def.header.version) & BP_MASK_ANY);
  found.only_holds |= found.lacks;
  BP_CHECK((found.alignment & (found.alignment - 1)) == 0, VALUE, "device ", backend.name, ":", ordinal,
           ": its properties give the alignment ", found.alignment, "; expected 0 or a power of two");
  BP_CHECK((found.copy_granule & (found.copy_granule - 1)) == 0 && found.copy_granule <= kMaxGranule, VALUE, "device ",
           backend.name, ":", ordinal, ": its properties give the copy_granule ", found.copy_granule,
           "; expected 0 or a power of two up to ", kMaxGranule);
}

// Inside a call: a backend that is registered now stays until the call ends.
void check_registered(const BackendRecord& backend) {
  BP_CHECK(!backend.withdrawn, DEVICE, "device ", backend.name, ": its plugin \"", backend.owner->name,
           "\" was unloaded");
}

// A slot of a backend's table that may start its driver. An exception becomes a status, with a message.
template <class Slot, class... Args>
bp_status call_backend(const BackendRecord& backend, const char* name, Slot slot, Args... args) {
  CallGuard guard;
  check_registered(backend);
  take_error();
  return call_foreign(name, [&] { return slot(backend.def.context, args...); });
}

void start_device(BackendRecord& backend, int32_t ordinal, Device& device) {
  device.backend = &backend;
  device.ordinal = ordinal;
  device.flags = backend.def.flags;
  device.lost_cause.store(nullptr, std::memory_order_relaxed);
  device.state = DeviceState::kReady;
  device.memory_limit = BP_NO_MEMORY_LIMIT;
  device.fork_generation = fork_generation();
  device.properties = {};
  device.properties.header = BP_HEADER(bp_device_properties);
  device.properties.alignment = 1;
  device.properties.dl_device_type = kDLExtDev;
  if (bp_status s = call_backend(backend, "properties", backend.def.properties, ordinal, &device.properties))
    throw_device_error(device, s, "properties");
  check_properties(backend, ordinal, device.properties);
  device.pool = make_pool(device);
  device.plain_dtypes = plain_dtypes_of(device);
}

// Under the backend's lock. Devices of an earlier registration serve again: the list of all and the forks know them for
// good, so that none is ever freed.
void start(BackendRecord& backend) {
  std::vector<Device*> before;
  for (auto& device : backend.devices) before.push_back(device.release());
  backend.devices.clear();
  int32_t count = 0;
  const bp_status status = call_backend(backend, "device_count", backend.def.device_count, &count);
  backend.started = true;
  if (status != BP_OK || count <= 0) {
    backend.start_error = take_error();
    if (backend.start_error.empty()) backend.start_error = "the backend found no device";
    return;
  }
  try {
    CallGuard guard;
    check_registered(backend);
    backend.extensions = extensions_of(backend.def);
  } catch (const Error& error) {
    backend.start_error = error.what();
    return;
  }
  for (int32_t ordinal = 0; ordinal < count; ++ordinal) {
    const bool known = static_cast<size_t>(ordinal) < before.size();
    auto made = known ? nullptr : std::make_unique<Device>();
    Device& device = known ? *before[static_cast<size_t>(ordinal)] : *made;
    start_device(backend, ordinal, device);
    backend.devices.emplace_back(known ? &device : made.release());
    if (!known) enlist(device);
  }
}

}  // namespace

uint32_t backend_count() noexcept { return backends.count.load(std::memory_order_acquire); }

BackendRecord& backend_at(uint32_t index) {
  BP_CHECK(index < backend_count(), VALUE, "device: found no backend with index ", index);
  return *backends.records[index].load(std::memory_order_acquire);
}

namespace {

template <class Wanted>
BackendRecord* first_backend(Wanted wanted) noexcept {
  for (uint32_t i = 0; i < backend_count(); ++i) {
    BackendRecord* record = backends.records[i].load(std::memory_order_acquire);
    if (!record->withdrawn && wanted(*record)) return record;
  }
  return nullptr;
}

BackendRecord* find_host_backend() noexcept {
  return first_backend([](const BackendRecord& record) { return (record.def.flags & BP_BACKEND_HOST_DEVICE) != 0; });
}

}  // namespace

BackendRecord* find_backend(std::string_view name) noexcept {
  return first_backend([&](const BackendRecord& record) { return record.name == name; });
}

namespace {

// That an earlier registration of the plugin has left, and nothing holds: its index is the name's for good.
BackendRecord* find_left_backend(const PluginRecord* owner, std::string_view name) {
  for (uint32_t kind = 0; kind < kLeaseKinds; ++kind)
    if (lease_count(*owner, static_cast<LeaseKind>(kind)) != 0) return nullptr;
  for (uint32_t i = 0; i < backend_count(); ++i)
    if (BackendRecord& record = backend_at(i); record.withdrawn && record.owner == owner && record.name == name)
      return &record;
  return nullptr;
}

// Its devices start anew at their first use.
BackendRecord* revive(BackendRecord& record, const bp_backend_def& def) {
  {
    std::lock_guard guard(record.lock);
    record.def = def;
    record.def.name = record.name.c_str();
    record.started = false;
    record.start_error.clear();
    record.extensions = {};
    for (auto& device : record.devices) ++device->generation;  // nothing of before is its memory
  }
  backends.host = nullptr;  // may be one of its devices, which starts anew
  record.withdrawn = false;
  return &record;
}

}  // namespace

BackendRecord* add_backend(PluginRecord* owner, const bp_backend_def& given) {
  // No table that could be called ends before `copy`.
  const bp_backend_def def =
      read_struct(given, offsetof(bp_backend_def, copy) + sizeof(given.copy), "register_backend");
  check_definition(owner, def);
  if (BackendRecord* taken = find_backend(def.name))
    detail::fail(BP_ERROR_VALUE, "register_backend: the name \"", def.name, "\" is taken by plugin \"",
                 taken->owner->name, "\"; plugin \"", owner->name, "\" must choose another");
  if (def.flags & BP_BACKEND_HOST_DEVICE)
    if (BackendRecord* taken = find_host_backend())
      detail::fail(BP_ERROR_VALUE, "register_backend: \"", def.name, "\" of plugin \"", owner->name,
                   "\" is BP_BACKEND_HOST_DEVICE, and so is \"", taken->name, "\" of plugin \"", taken->owner->name,
                   "\"; leave the flag out, or unload that plugin first");
  if (BackendRecord* left = find_left_backend(owner, def.name)) return revive(*left, def);
  uint32_t index = backend_count();
  BP_CHECK(index < kMaxBackends, VALUE, "register_backend: all ", kMaxBackends, " indices are taken");
  auto record = std::make_unique<BackendRecord>();
  record->index = index;
  record->name = def.name;
  record->def = def;
  record->def.name = record->name.c_str();
  record->owner = owner;
  BackendRecord* placed = record.release();
  placed->lock.enlist(LockRank::kBackend);
  backends.records[index].store(placed, std::memory_order_release);
  backends.count.store(index + 1, std::memory_order_release);
  return placed;
}

Device& device_at(bp_device id) {
  BackendRecord& backend = backend_at(id.backend);
  BP_CHECK(!backend.withdrawn, DEVICE, "device ", backend.name, ": its plugin \"", backend.owner->name,
           "\" was unloaded");
  std::lock_guard guard(backend.lock);
  if (!backend.started) start(backend);
  BP_CHECK(!backend.devices.empty(), DEVICE, "device ", backend.name, ": ", backend.start_error);
  BP_CHECK(id.ordinal >= 0 && static_cast<size_t>(id.ordinal) < backend.devices.size(), VALUE, "device ", backend.name,
           ":", id.ordinal, ": there are ", backend.devices.size(), " devices, numbered from 0");
  return *backend.devices[static_cast<size_t>(id.ordinal)];
}

std::string name_of(const Device& device) {
  return device.ordinal == 0 ? device.backend->name : device.backend->name + ":" + std::to_string(device.ordinal);
}

Device& host_device() {
  if (Device* host = backends.host.load(std::memory_order_acquire); host && !host->backend->withdrawn) return *host;
  BackendRecord* backend = find_host_backend();
  if (!backend) {
    plugin_finder.for_host();
    backend = find_host_backend();
  }
  BP_CHECK(backend, DEVICE,
           "no backend of the host's processor is loaded (one with BP_BACKEND_HOST_DEVICE, as \"cpu\"); "
           "put its plugin on BACKPLANE_PLUGIN_PATH, or choose a device by set_default_device");
  Device& device = device_at({backend->index, 0});
  backends.host.store(&device, std::memory_order_release);
  return device;
}

void restart_after_fork(Device& device) {
  const bp_backend_def& def = device.backend->def;
  std::lock_guard guard(device.backend->lock);  // threads of the child may come at once
  if (device.fork_generation == fork_generation()) return;
  bool can = BP_HAS(&def, bp_backend_def, after_fork) && def.after_fork;
  BP_CHECK(can || (device.synchronous() && device.host_memory()), DEVICE, "device ", name_of(device),
           " was used before this process was forked and cannot be used in the child; start children with "
           "multiprocessing's \"spawn\" method");
  if (can && def.after_fork(def.context) != BP_OK)
    detail::fail(BP_ERROR_DEVICE, "device ", name_of(device), ": after_fork failed: ", cold().error);
  // The backend has made all of its devices usable.
  for (const auto& each : device.backend->devices) {
    each->plain_dtypes = each->state == DeviceState::kReady ? plain_dtypes_of(*each) : 0;
    for (auto& stream : each->streams) stream->busy = false;  // by threads that the child does not have
    each->fork_generation = fork_generation();
  }
}

Device* first_started() noexcept { return started_devices.load(std::memory_order_acquire); }

void forget_devices_after_fork() noexcept {
  for (Device* device = first_started(); device; device = device->next_started) device->plain_dtypes = 0;
}

void throw_device_error(Device& device, bp_status status, const char* step) {
  std::string cause = take_error();
  if (cause.empty()) cause = "status " + std::to_string(status) + " without a message";
  if (status == BP_ERROR_DEVICE_LOST) mark_lost(device, cause);
  detail::fail(status, "device ", name_of(device), ": ", step, " failed: ", cause);
}

}  // namespace backplane::core

namespace backplane {

using namespace core;

[[noreturn, gnu::cold]] static void fail_device(std::string_view name) {
  std::string here, known;
  for (const DeviceInfo& device : devices()) here += (here.empty() ? "" : ", ") + device.name;
  for (const std::string& backend : plugin_finder.known_backends()) known += (known.empty() ? "" : ", ") + backend;
  detail::fail(BP_ERROR_VALUE, "device \"", name,
               "\": no backend of that name. Devices here: ", here.empty() ? "none" : here,
               "; backends with a plugin: ", known.empty() ? "none" : known,
               ". Load another one's plugin with load_plugin(path) or put its folder on BACKPLANE_PLUGIN_PATH");
}

bp_device parse_device(std::string_view name) {
  std::string_view backend = name.substr(0, name.find(':'));
  int32_t ordinal = 0;
  if (backend.size() < name.size()) {
    std::string_view digits = name.substr(backend.size() + 1);
    BP_CHECK(!digits.empty() && digits.size() < 6 && digits.find_first_not_of("0123456789") == std::string_view::npos,
             VALUE, "device \"", name, "\": expected NAME or NAME:NUMBER, for example \"cpu\" or \"sim:1\"");
    for (char digit : digits) ordinal = ordinal * 10 + (digit - '0');
  }
  find_backend(backend) ? settle_registrations() : static_cast<void>(plugin_finder.for_backend(backend));
  BackendRecord* found = find_backend(backend);
  if (!found) fail_device(name);
  return id_of(device_at({found->index, ordinal}));
}

std::string device_name(bp_device device) { return name_of(device_at(device)); }

std::vector<DeviceInfo> devices() {
  std::vector<DeviceInfo> infos;
  for (const std::string& name : plugin_finder.known_backends()) {
    try {
      BackendRecord& backend = backend_at(parse_device(name).backend);
      CallGuard guard;
      check_registered(backend);
      for (auto& device : backend.devices)
        infos.push_back(
            {id_of(*device), name_of(*device), device->properties.name, backend.owner->name, device->properties});
    } catch (const Error&) {
      // A backend without a driver has no devices; `plugins --why` says why.
    }
  }
  return infos;
}

void check_device(bp_device device) { device_at(device); }
std::optional<bp_device> set_thread_default_device(std::optional<bp_device> device) noexcept {
  return std::exchange(core::device_of_thread, device);
}

bp_device default_device() {
  if (core::device_of_thread) return *core::device_of_thread;
  uint64_t id = core::default_device_id.load(std::memory_order_relaxed);
  if (id == ~uint64_t{0}) return id_of(host_device());
  return {static_cast<uint32_t>(id >> 32), static_cast<int32_t>(id)};
}

void set_default_device(bp_device device) {
  device_at(device);
  core::default_device_id.store(uint64_t{device.backend} << 32 | static_cast<uint32_t>(device.ordinal),
                                std::memory_order_relaxed);
}

void synchronize(bp_device device) {
  CallGuard guard;
  core::synchronize(device_at(device));
}

}  // namespace backplane
