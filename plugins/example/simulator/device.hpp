// The simulated devices of one backend, and the backend's table.
//
// Two backends share this code: "sim" hands out protected addresses, "simh" handles with offsets aligned to 16
// bytes. A device comes to life when it is first used. Destroying the backend waits for what is recorded, ends the
// threads and unmaps. Any thread may call.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <unordered_map>

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

  DeviceMemory memory;
  LostFlag lost;
  std::mutex mutex;  // guards `queues`
  std::unordered_map<Queue*, std::shared_ptr<Queue>> queues;
};

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
