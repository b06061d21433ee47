// The backend's devices: each with its primary context, the objects made in it, and the use of its memory.
#pragma once

#include <algorithm>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "libraries/libraries.hpp"
#include "runtime/abort_flag.hpp"
#include "runtime/callbacks.hpp"
#include "runtime/clock.hpp"
#include "runtime/features.hpp"
#include "runtime/modules.hpp"
#include "runtime/pinned.hpp"
#include "runtime/stream.hpp"

namespace backplane::cuda {

// Objects that the host owns and gives back. A reset ends those that it never gives back. Any thread may call.
template <class T>
class Lent {
 public:
  T& add(std::unique_ptr<T> made) {
    T& added = *made;
    std::lock_guard lock(mutex_);
    all_[&added] = std::move(made);
    return added;
  }
  std::unique_ptr<T> take(T& lent) {
    std::lock_guard lock(mutex_);
    const auto found = all_.find(&lent);
    if (found == all_.end()) return nullptr;
    std::unique_ptr<T> taken = std::move(found->second);
    all_.erase(found);
    return taken;
  }
  template <class Holds>
  bool all_of(Holds holds) {
    std::lock_guard lock(mutex_);
    return std::all_of(all_.begin(), all_.end(), [&](const auto& row) { return holds(*row.second); });
  }
  std::map<const T*, std::unique_ptr<T>> take_all() {
    std::lock_guard lock(mutex_);
    return std::exchange(all_, {});
  }

 private:
  std::mutex mutex_;
  std::map<const T*, std::unique_ptr<T>> all_;  // guarded by mutex_
};

// A block of a kind of memory, by where the host sees it begin.
struct KindBlock {
  driver::Pointer begin;
  uint64_t size;
  std::unique_ptr<HostBlock> host;  // nullptr: the device's own
};
class KindBlocks {
 public:
  void add(void* seen, KindBlock block) {
    std::lock_guard lock(mutex_);
    blocks_.insert_or_assign(seen, std::move(block));
  }
  KindBlock take(void* seen) {
    std::lock_guard lock(mutex_);
    auto found = blocks_.extract(seen);
    BP_CHECK(!found.empty(), VALUE, "cuda: ", seen, " is not a block of a kind of memory");
    return std::move(found.mapped());
  }
  std::map<void*, KindBlock> take_all() {
    std::lock_guard lock(mutex_);
    return std::exchange(blocks_, {});
  }

 private:
  std::mutex mutex_;
  std::map<void*, KindBlock> blocks_;  // guarded by mutex_
};

// The functions that make or end something want the device's context to be the calling thread's current one.
class Device {
 public:
  Device(const Driver& driver, int32_t ordinal);
  ~Device();
  Device(const Device&) = delete;

  driver::Context context() const { return context_; }
  driver::Device handle() const { return handle_; }
  Modules& modules() { return *modules_; }
  Libraries& libraries() { return *libraries_; }
  uint32_t multiprocessors() const { return multiprocessors_; }
  const Facts& facts() const { return *facts_; }
  Callbacks& callbacks() { return *callbacks_; }
  Clock& clock() { return *clock_; }
  Lent<Stream>& streams() { return streams_; }
  Lent<Stamp>& stamps() { return stamps_; }
  Lent<Recording>& recordings() { return recordings_; }
  KindBlocks& blocks() { return blocks_; }
  AbortFlag& aborted() { return aborted_; }
  const AbortFlag& aborted() const { return aborted_; }

  driver::Pointer allocate(uint64_t size);  // throws backplane::Error
  void deallocate(driver::Pointer block, uint64_t size);
  void destroy(Stream& stream);
  // Waits until no stream has work. Throws backplane::Error once the device is given up.
  void drain();
  // As new. No other call is running; the context is not current. Throws backplane::Error where the device was given up
  // and CUDA does not end its work.
  void reset();

  std::mutex mutex;       // guards what follows
  bp_memory_stats use{};  // its `limit` is the one that allocate keeps

 private:
  void open();
  void close();
  void abandon();
  void reset_context();

  const Driver& driver_;
  AbortFlag aborted_;
  driver::Device handle_ = 0;
  driver::Context context_ = nullptr;
  uint32_t multiprocessors_ = 1;
  std::unique_ptr<Modules> modules_;
  std::unique_ptr<Libraries> libraries_;
  std::unique_ptr<const Facts> facts_;
  std::unique_ptr<Callbacks> callbacks_;
  std::unique_ptr<Clock> clock_;
  Lent<Stream> streams_;
  Lent<Stamp> stamps_;
  Lent<Recording> recordings_;
  KindBlocks blocks_;
  std::shared_future<driver::Result> resetting_;  // CUDA's reset of a device that was given up
};

class Backend {
 public:
  explicit Backend(const bp_host* host) : host_(host) {}
  const bp_host* host() const { return host_; }
  bp_backend_def table();
  Device& device(int32_t ordinal);  // made at its first use; throws backplane::Error

  // Locked by the first device.
  PinnedMemory& pinned() { return pinned_; }
  // The memory of `peer` can be read by `ordinal`, whose context is the calling thread's current one, from now on.
  void open_to_peer(int32_t ordinal, int32_t peer);
  void reset(int32_t ordinal);

 private:
  const bp_host* host_;
  std::mutex mutex_;  // guards what follows
  std::vector<std::unique_ptr<Device>> devices_;
  std::set<std::pair<int32_t, int32_t>> open_;  // a device, and its peer
  PinnedMemory pinned_;                         // has a lock of its own
};

// Makes the device's context the calling thread's current one. The destructor restores the context of the caller's
// other libraries. Throws backplane::Error if the device is lost or given up.
class DeviceScope {
 public:
  explicit DeviceScope(const Device& device) : driver_(the_driver()) {
    device.aborted().check();
    check(driver_.cuCtxPushCurrent_v2(device.context()), "cuCtxPushCurrent");
  }
  ~DeviceScope() {
    driver::Context popped = nullptr;
    (void)driver_.cuCtxPopCurrent_v2(&popped);
  }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  const Driver& driver_;
};

}  // namespace backplane::cuda
