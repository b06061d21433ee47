// Devices and streams as the core sees them: properties, memory, tickets, deferred errors.
//
// A BackendRecord is one registration of a backend; its index is never reused. Its devices start at first use.
// Synchronous backends have no streams. Streams of one device are guarded by the device's lock while work is put
// on them; waiting happens outside it.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backplane/abi/backend.h"
#include "memory/block_pool.hpp"
#include "memory/fork.hpp"
#include "memory/lock.hpp"
#include "memory/plugin_record.hpp"
#include "memory/tensor_impl.hpp"

namespace backplane::core {

struct BackendRecord;

struct Stream {
  Device* device = nullptr;
  bp_stream* handle = nullptr;
  uint64_t issued = 0;
  uint64_t flushed = 0;
  uint64_t completed = 0;
  std::deque<std::pair<uint64_t, const char*>> unfinished;  // ticket and op, to name the culprit of an error
};

struct Device {
  BackendRecord* backend = nullptr;
  int32_t ordinal = 0;
  uint32_t flags = 0;  // BP_BACKEND_*
  bool lost = false;   // a fatal error happened: `lost_cause` answers every later call
  std::string lost_cause;
  std::atomic<uint32_t> fork_generation{0};
  bp_device_properties properties{};
  // That it computes in, if it is synchronous, takes any offset and may be used: 0 once it is lost, and in a forked
  // child until it was made usable there.
  bp_dtype_mask plain_dtypes = 0;
  Device* next_started = nullptr;                // the list of all, which only grows
  Lock lock;                                     // a kernel may call ops while its work is being recorded
  std::vector<std::unique_ptr<Stream>> streams;  // [0] is the default
  std::unique_ptr<BlockPool> pool;              // of an asynchronous device
  uint64_t memory_limit = BP_NO_MEMORY_LIMIT;  // of what the pool holds
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
  Lock lock;
  std::vector<std::unique_ptr<Device>> devices;
};

// Makes a device that was used before a fork usable in the child. Throws the refusal where that cannot be.
void restart_after_fork(Device& device);
// Throws the device's first cause if it is lost, and the refusal after a fork.
void make_usable(Device& device);
inline void check_usable(Device& device) {
  if (device.lost || device.backend->withdrawn.load(std::memory_order_acquire) ||
      device.fork_generation != fork_generation()) [[unlikely]]
    make_usable(device);
}

BackendRecord* add_backend(PluginRecord* owner, const bp_backend_def& def);  // under the registry's lock
BackendRecord* find_backend(std::string_view name) noexcept;                 // opened ones only
BackendRecord& backend_at(uint32_t index);
uint32_t backend_count() noexcept;

// Starts the backend's devices if need be. Throws: unknown ordinal, no driver, withdrawn, used before a fork.
Device& device_at(bp_device id);
inline bp_device id_of(const Device& device) { return {device.backend->index, device.ordinal}; }
std::string name_of(const Device& device);
// The processor that runs the program, for fallbacks and from_host: the backend with BP_BACKEND_HOST_DEVICE.
Device& host_device();

// In a forked child, whose one thread calls it: no device is used there unchecked.
void forget_devices_after_fork() noexcept;
// A fatal error happened, with this cause; the first one counts.
void mark_lost(Device& device, const std::string& cause);
// Turns a failing status of the backend into an Error naming the device and the step.
[[noreturn]] void throw_device_error(Device& device, bp_status status, const char* step);

Stream& current_stream(Device& device);  // of this thread; the default stream unless set
Stream& new_stream(Device& device);
void set_current_stream(Device& device, Stream& stream);

// Under device.lock. Takes the next ticket for `op` after ordering it behind what it must follow of the work on other
// streams that touches these storages: a read behind writes, a write behind all. Notes the uses.
uint64_t issue(Stream& stream, const char* op, bp_storage* const* reads, int n_reads, bp_storage* const* writes,
               int n_writes);
// Flushes and blocks until `ticket`. Throws the stream's deferred error with the name of its op.
void wait_for(Stream& stream, uint64_t ticket);
void synchronize(Device& device);
void refresh_completed(Stream& stream);  // under the device's lock: asks the backend how far it is

// For use on this thread's current stream. An asynchronous device's comes from its pool.
void* allocate(Device& device, uint64_t size);
std::unique_ptr<BlockPool> make_pool(const Device& device);  // nullptr of a synchronous one
bool empty_caches(Device& device);           // memory.cpp: the pool's and the backend's; false: there is none to empty
std::string bytes_text(uint64_t bytes);      // "1234567 bytes (1.2 MiB)"
std::string usage_text(Device& device);      // for errors: "; 3 bytes are in use, no limit is set"
// Gives what an asynchronous device's pool has kept, and no work uses, back to the backend.
void empty_pool(Device& device);
[[noreturn]] void fail_size(const int64_t* sizes, int32_t ndim, uint64_t item_size);
void deallocate(Device& device, void* data, uint64_t size, const StorageUses& uses) noexcept;

void copy_from_host(Device& device, bp_storage* dst, uint64_t dst_offset, const void* src, uint64_t size);
void copy_to_host(Device& device, bp_storage* src, uint64_t src_offset, void* dst, uint64_t size);
// Bytes from one storage of the device to another, in the order of the current stream.
void copy_within(Device& device, bp_storage* dst, uint64_t dst_offset, bp_storage* src, uint64_t src_offset,
                 uint64_t size);

}  // namespace backplane::core
