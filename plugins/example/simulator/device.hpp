// The simulated devices of one backend, and the backend's table.
//
// Two backends share this code: "sim" hands out protected addresses, "simh" handles with offsets aligned to 16
// bytes. A device is created at its first use. Destroying the backend waits for recorded work, ends the
// threads and unmaps. Any thread may call.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backplane/plugin.hpp"
#include "memory.hpp"
#include "queue.hpp"

namespace sim {

inline constexpr int32_t kDeviceCount = 2;
// Bytes of a device: 8 GiB, whose pages take room only once they are written, or what BACKPLANE_SIM_MEMORY says.
uint64_t device_memory();

struct Device {
  explicit Device(Addressing addressing) : memory(addressing, device_memory()) {}
  ~Device() { queues.clear(); }  // queues use the memory

  // Streams: of a priority, and over another.
  Queue& add_queue(int32_t priority);
  Queue& add_queue_over(Queue& base);
  void reset();  // as new; no call is running

  // The pool of the extension "memory": a block is released when its last work has ended.
  void give(void* data, bp_stream* const* streams, const uint64_t* tickets, int32_t n);
  void release_ended();

  DeviceMemory memory;
  std::atomic<uint64_t> fast_memory{0};  // bytes in use of the kind "fast"
  LostFlag lost;
  Turns turns;
  std::mutex mutex;  // guards `queues`
  std::unordered_map<Queue*, std::shared_ptr<Queue>> queues;

 private:
  struct Given {
    void* data;
    std::vector<std::pair<std::shared_ptr<Queue>, uint64_t>> uses;  // a queue, and its last ticket that uses the block
  };
  std::mutex given_mutex_;
  std::vector<Given> given_;  // guarded by given_mutex_
};

// What a backend offers beyond its table; in extensions.cpp.
const void* BP_CALL extension(void* context, const char* name, uint32_t version);

class Backend {
 public:
  Backend(const char* name, Addressing addressing, uint64_t alignment)
      : name_(name), addressing_(addressing), alignment_(alignment) {}

  void register_on(const backplane::plugin::Registrar& registrar);

  Device& device(int32_t ordinal);  // throws Error(BP_ERROR_VALUE)
  const bp_host* host() const { return host_; }
  const char* name() const { return name_; }
  Addressing addressing() const { return addressing_; }
  uint64_t alignment() const { return alignment_; }

 private:
  const char* const name_;
  const Addressing addressing_;
  const uint64_t alignment_;
  const bp_host* host_ = nullptr;  // set once, by register_on
  std::mutex mutex_;               // guards `devices_`
  std::array<std::unique_ptr<Device>, kDeviceCount> devices_;
};

}  // namespace sim
