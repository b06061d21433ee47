// The backend: the driver's devices, and its device table over them. The one object of this plugin.
#pragma once

#include <map>

#include "runtime/stream.hpp"

namespace minimal {

// A device: CUDA's primary context of it, which other libraries of the process share, and the kernels.
struct Device {
  explicit Device(int ordinal);
  ~Device();  // no stream is left
  Device(const Device&) = delete;

  CudaHandle function(size_t module, const char* name);  // of the modules that CMakeLists.txt lists

  int number = 0;  // the driver's
  CudaHandle context = nullptr;

 private:
  std::mutex mutex_;  // guards what follows
  std::map<size_t, CudaHandle> modules_;
  std::map<std::pair<size_t, std::string>, CudaHandle> functions_;
};

// Makes a device's context the calling thread's, and the one before again.
class Current {
 public:
  explicit Current(const Device& device) { check(driver().cuCtxPushCurrent_v2(device.context), "cuCtxPushCurrent"); }
  ~Current() {
    CudaHandle left = nullptr;
    (void)driver().cuCtxPopCurrent_v2(&left);
  }
  Current(const Current&) = delete;
};

class Backend {
 public:
  void register_on(const backplane::plugin::Registrar& registrar);
  const bp_host* host() const { return host_; }
  int32_t count();  // starts the driver; throws where there is none
  Device& device(int32_t ordinal);

 private:
  const bp_host* host_ = nullptr;  // set once, by register_on
  std::mutex mutex_;               // guards what follows
  std::vector<std::unique_ptr<Device>> devices_;
};

}  // namespace minimal
