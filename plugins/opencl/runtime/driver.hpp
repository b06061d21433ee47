// The driver: devices, and programs that it compiles when they are first needed.
//
// Devices are found once, when the backend is first asked how many there are, and live until the plugin is stopped. Any
// thread may call.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include "backplane/plugin.hpp"

namespace opencl {

// Throws Error(BP_ERROR_DEVICE, or BP_ERROR_MEMORY where that was the cause) with the driver's call and code.
void check(cl_int status, const char* call);

// A kernel of a program. Its arguments are set and it is enqueued under the lock.
struct Kernel {
  std::mutex mutex;
  cl_program program = nullptr;
  cl_kernel kernel = nullptr;
  ~Kernel();
};

class Device {
 public:
  explicit Device(cl_device_id id);
  ~Device();
  Device(const Device&) = delete;

  // The kernel `name` of kernels.cl, compiled with `defines` in front of it.
  Kernel& kernel(const std::string& name, const std::string& defines);

  cl_device_id id() const { return id_; }
  cl_context context() const { return context_; }
  std::string name() const;
  uint64_t memory() const { return memory_; }
  uint64_t largest_block() const { return largest_block_; }
  bool has_float64() const { return has_float64_; }

 private:
  cl_device_id id_;
  cl_context context_ = nullptr;
  uint64_t memory_ = 0, largest_block_ = 0;
  bool has_float64_ = false;
  std::mutex mutex_;  // guards `kernels_`
  std::map<std::string, std::unique_ptr<Kernel>> kernels_;
};

class Driver {
 public:
  int32_t count();  // looks for devices once; throws where there is no driver
  Device& device(int32_t ordinal);
  void stop();  // no work is running any more

 private:
  std::mutex mutex_;  // guards what follows
  bool looked_ = false;
  std::vector<std::unique_ptr<Device>> devices_;
};

}  // namespace opencl
