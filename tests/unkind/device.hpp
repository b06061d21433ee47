// The unkind devices of one backend. Two backends share this code: "unkind" has addresses whose blocks the host's pool
// cuts and keeps, "unkindh" has handles, offsets in multiples of 16, and a pool of its own.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "backplane/plugin.hpp"
#include "memory.hpp"
#include "scheduler.hpp"

namespace unkind {

inline constexpr int32_t kDeviceCount = 3;

// Recordings and time stamps that the host has: it gives each back, but for those that a reset drops.
class Handles {
 public:
  template <class T>
  void* keep(std::shared_ptr<T> kept) {
    void* const handle = kept.get();
    std::lock_guard lock(mutex_);
    return kept_.emplace(handle, std::move(kept)).first->first;
  }
  void drop(void* handle) {
    std::lock_guard lock(mutex_);
    kept_.erase(handle);
  }
  void clear() {
    std::lock_guard lock(mutex_);
    kept_.clear();
  }

 private:
  std::mutex mutex_;
  std::map<void*, std::shared_ptr<void>> kept_;
};

// Guarded by the scheduler's mutex.
struct Device {
  Device(bool addressable, uint64_t capacity) : aborts(addressable), memory(addressable, capacity) {}
  struct Given {
    uint64_t block;
    std::vector<std::pair<std::shared_ptr<Queue>, uint64_t>> uses;
  };
  const bool aborts;  // the table has `abort`
  Memory memory;
  std::optional<std::string> lost;  // its cause
  std::vector<Given> given;
  Handles handles;
};

class Backend {
 public:
  Backend(const char* name, bool addressable, uint64_t alignment)
      : name_(name), addressable_(addressable), alignment_(alignment) {}

  void register_on(const backplane::plugin::Registrar& registrar);

  Device& device(int32_t ordinal);  // throws Error(BP_ERROR_VALUE)
  Scheduler& scheduler() { return scheduler_; }
  const bp_host* host() const { return host_; }
  const char* name() const { return name_; }
  bool addressable() const { return addressable_; }
  uint64_t alignment() const { return alignment_; }

 private:
  const char* const name_;
  const bool addressable_;
  const uint64_t alignment_;
  const bp_host* host_ = nullptr;  // set once, by register_on
  std::mutex mutex_;               // guards `devices_`
  std::array<std::unique_ptr<Device>, kDeviceCount> devices_;
  Scheduler scheduler_;  // last: its queues end before the devices
};

uint64_t device_memory();

inline Queue& queue_of(bp_stream* stream) { return *reinterpret_cast<Queue*>(stream); }
inline bp_stream* stream_of(Queue& queue) { return reinterpret_cast<bp_stream*>(&queue); }

// What a backend offers beyond its table; in extensions.cpp.
const void* BP_CALL extension(void* context, const char* name, uint32_t version);

}  // namespace unkind
