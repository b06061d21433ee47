// The backend's devices: each with its primary context, its modules and what its memory is used for.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "libraries/libraries.hpp"
#include "runtime/modules.hpp"
#include "runtime/stream.hpp"

namespace backplane::cuda {

class Device {
 public:
  Device(const Driver& driver, int32_t ordinal);
  ~Device();
  Device(const Device&) = delete;

  driver::Context context() const { return context_; }
  driver::Device handle() const { return handle_; }
  Modules& modules() { return modules_; }
  Libraries& libraries() { return libraries_; }
  uint32_t multiprocessors() const { return multiprocessors_; }
  std::mutex mutex;       // guards what follows
  bp_memory_stats use{};  // its `limit` is the one that allocate keeps

 private:
  const Driver& driver_;
  driver::Device handle_ = 0;
  driver::Context context_ = nullptr;
  uint32_t multiprocessors_ = 1;
  Modules modules_;
  Libraries libraries_;
};

class Backend {
 public:
  explicit Backend(const bp_host* host) : host_(host) {}
  const bp_host* host() const { return host_; }
  bp_backend_def table();
  Device& device(int32_t ordinal);  // made at its first use; throws backplane::Error

 private:
  const bp_host* host_;
  std::mutex mutex_;  // guards devices_
  std::vector<std::unique_ptr<Device>> devices_;
};

// The calling thread's current context while one function runs: that of the caller's other libraries comes back.
class DeviceScope {
 public:
  explicit DeviceScope(const Device& device) : driver_(the_driver()) {
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
