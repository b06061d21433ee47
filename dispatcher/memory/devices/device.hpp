// Devices as the core sees them: backends, properties, what became of them.
//
// A BackendRecord is one registration of a backend; its index is never reused. Its devices start at first use.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backplane/abi/backend.h"
#include "memory/block_pool.hpp"
#include "memory/devices/extensions.hpp"
#include "memory/devices/held_work.hpp"
#include "memory/fork.hpp"
#include "memory/process/lock.hpp"
#include "memory/process/plugin_record.hpp"
#include "memory/storage.hpp"

namespace backplane::core {

struct BackendRecord;

// Failing: its first cause is being noted. Lost: calls are refused with it. Resetting: so they are while it is made
// new.
enum class DeviceState : uint8_t { kReady, kFailing, kLost, kResetting };

// A block of a tensor that ended where nobody may wait for the device's lock.
struct FreedBlock {
  void* data;
  uint64_t size;
  uint32_t generation;  // of the device
  StorageUses uses;
  FreedBlock* next = nullptr;
};

struct Device {
  BackendRecord* backend = nullptr;
  int32_t ordinal = 0;
  uint32_t flags = 0;  // BP_BACKEND_*
  std::atomic<DeviceState> state{DeviceState::kReady};
  std::atomic<std::shared_ptr<const std::string>> lost_cause;  // answers calls while it is not ready; see loss.hpp
  std::atomic<bool> hangs{false};                              // lost because its work does not end
  std::atomic<uint64_t> wait_timeout{0};                       // nanoseconds that a wait may take; 0: any time
  std::atomic<uint32_t> fork_generation{0};
  bp_device_properties properties{};
  // That it computes in, if it is synchronous, takes any offset and may be used: 0 once it is lost, and in a forked
  // child until it was made usable there. Calls read it without a lock, in no order with the device's loss.
  std::atomic<bp_dtype_mask> plain_dtypes{0};
  Device* next_started = nullptr;                // the list of all, which only grows
  Lock lock;                                     // a kernel may call ops while its work is being recorded
  std::vector<std::unique_ptr<Stream>> streams;  // [0] is the default
  std::atomic<Stream*> default_stream{nullptr};  // that one, for readers without the lock
  std::vector<Stream*> idle_streams;             // of `streams`: nobody's, and used again
  std::vector<std::unique_ptr<Stream>> retired;  // of before a reset, all of whose work counts as complete
  std::atomic<uint32_t> generation{0};           // resets; memory of an earlier one is lost
  std::unique_ptr<BlockPool> pool;               // of an asynchronous device
  std::atomic<FreedBlock*> freed{nullptr};       // given back while another thread held the lock; a list
  uint64_t memory_limit = BP_NO_MEMORY_LIMIT;    // of what the pool holds
  std::vector<HeldWork> held;                    // what unfinished work needs and nobody else holds
  bool synchronous() const { return (flags & BP_BACKEND_SYNCHRONOUS) != 0; }
  bool shares_memory() const { return (flags & BP_BACKEND_HOST_MEMORY) != 0; }  // with the host, which waits for work
  bool host_memory() const { return shares_memory() && synchronous(); }         // which the host may touch at any time
};

struct BackendRecord {
  uint32_t index = 0;
  std::string name;
  bp_backend_def def{};
  PluginRecord* owner = nullptr;
  std::atomic<bool> withdrawn{false};
  bool started = false;
  std::string start_error;
  BackendExtensions extensions;
  Lock lock;
  std::vector<std::unique_ptr<Device>> devices;
};

// Makes a device that was used before a fork usable in the child. Throws the refusal where that cannot be.
void restart_after_fork(Device& device);
// Throws the device's first cause if it is lost, and the refusal after a fork.
void make_usable(Device& device);
inline void check_usable(Device& device) {
  if (device.state.load(std::memory_order_acquire) != DeviceState::kReady ||
      device.backend->withdrawn.load(std::memory_order_acquire) || device.fork_generation != fork_generation())
      [[unlikely]]
    make_usable(device);
}

BackendRecord* add_backend(PluginRecord* owner, const bp_backend_def& def);  // under the registry's lock
BackendRecord* find_backend(std::string_view name) noexcept;                 // opened ones only
BackendRecord& backend_at(uint32_t index);
Device* first_started() noexcept;  // of all backends; the rest by next_started
uint32_t backend_count() noexcept;

// Starts the backend's devices if need be. Throws: unknown ordinal, no driver, withdrawn, used before a fork.
Device& device_at(bp_device id);
inline bp_device id_of(const Device& device) { return {device.backend->index, device.ordinal}; }
// Of a tensor; of one without storage, the device that its handle names.
inline Device& device_of(const bp_tensor& t) {
  return t.storage ? *t.storage->device : device_at({t.backend, t.ordinal});
}
std::string name_of(const Device& device);
// The processor that runs the program, for fallbacks and from_host: the backend with BP_BACKEND_HOST_DEVICE.
Device& host_device();

// In a forked child, whose one thread calls it: no device is used there unchecked.
void forget_devices_after_fork() noexcept;
// The first value of `plain_dtypes`. Of a device that lacks a dtype, results are looked at as well, which the fast path
// does not do.
bp_dtype_mask plain_dtypes_of(const Device& device);
// A fatal error happened, with this cause; the first one counts.
void mark_lost(Device& device, const std::string& cause);
// Turns a failing status of the backend into an Error naming the device and the step.
[[noreturn]] void throw_device_error(Device& device, bp_status status, const char* step);

}  // namespace backplane::core
