// The backend's table, its context and how much memory of each device is in use.
//
// No CUDA call is made before device_count is asked for. Lives from registration to stop. Any thread may call.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "backplane/plugin.hpp"
#include "runtime/stream.hpp"

namespace backplane::cuda {

struct MemoryUse {
  uint64_t in_use = 0;
  uint64_t peak = 0;
};

class Backend {
 public:
  explicit Backend(const bp_host* host) : host_(host) {}

  bp_backend_def table();
  const bp_host* host() const { return host_; }

  void* take_memory(int32_t ordinal, uint64_t size);
  void give_memory(int32_t ordinal, void* data, uint64_t size);
  MemoryUse memory_use(int32_t ordinal);

 private:
  const bp_host* host_;
  std::mutex mutex_;  // guards `use_`
  std::unordered_map<int32_t, MemoryUse> use_;
};

inline Stream& as_stream(bp_stream* stream) { return *reinterpret_cast<Stream*>(stream); }

// The calling thread's current device while one function runs: that of the caller's other libraries comes back.
class DeviceScope {
 public:
  explicit DeviceScope(int32_t ordinal);  // throws backplane::Error
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  int before_ = 0;
  int now_;
};

}  // namespace backplane::cuda
