// Blocks of memory that end with their object: the host's that the devices see, and a device's. The device's context is
// the calling thread's current one, also where they end; after a fatal error there is nothing left to free.
#pragma once

#include <cstddef>

#include "driver/driver.hpp"

namespace backplane::cuda {

class HostBlock {
 public:
  // Throws backplane::Error.
  HostBlock(const Driver& driver, size_t bytes) : driver_(driver) {
    check(driver_.cuMemHostAlloc(&data_, bytes, driver::kHostAllocPortable | driver::kHostAllocDeviceMap),
          "cuMemHostAlloc");
    const driver::Result seen = driver_.cuMemHostGetDevicePointer_v2(&device_, data_, 0);
    if (seen != driver::kSuccess) (void)driver_.cuMemFreeHost(data_);
    check(seen, "cuMemHostGetDevicePointer");
  }
  ~HostBlock() { (void)driver_.cuMemFreeHost(data_); }
  HostBlock(const HostBlock&) = delete;

  void* data() const { return data_; }
  driver::Pointer device() const { return device_; }

 private:
  const Driver& driver_;
  void* data_ = nullptr;
  driver::Pointer device_ = 0;
};

class DeviceBlock {
 public:
  DeviceBlock(const Driver& driver, size_t bytes) : driver_(driver) {
    check(driver_.cuMemAlloc_v2(&device_, bytes), "cuMemAlloc");
  }
  ~DeviceBlock() { (void)driver_.cuMemFree_v2(device_); }
  DeviceBlock(const DeviceBlock&) = delete;

  driver::Pointer device() const { return device_; }

 private:
  const Driver& driver_;
  driver::Pointer device_ = 0;
};

}  // namespace backplane::cuda
