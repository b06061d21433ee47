// Devices and their primary contexts; see backend.hpp. The table is in table.cpp.
#include "runtime/backend.hpp"

namespace backplane::cuda {

Device::Device(const Driver& driver, int32_t ordinal) : driver_(driver), modules_(driver) {
  check(driver_.cuDeviceGet(&handle_, ordinal), "cuDeviceGet");
  int found = 1;
  check(driver_.cuDeviceGetAttribute(&found, driver::kMultiprocessors, handle_), "cuDeviceGetAttribute");
  multiprocessors_ = static_cast<uint32_t>(found);
  use.limit = BP_NO_MEMORY_LIMIT;
  check(driver_.cuDevicePrimaryCtxRetain(&context_, handle_), "cuDevicePrimaryCtxRetain");
}

// The context may be another library's too, so what was loaded into it is taken out.
Device::~Device() {
  driver::Context popped = nullptr;
  if (driver_.cuCtxPushCurrent_v2(context_) == driver::kSuccess) {
    libraries_.close();
    modules_.unload();
    (void)driver_.cuCtxPopCurrent_v2(&popped);
  }
  (void)driver_.cuDevicePrimaryCtxRelease_v2(handle_);
}

Device& Backend::device(int32_t ordinal) {
  std::lock_guard lock(mutex_);
  const auto place = static_cast<size_t>(ordinal);
  if (devices_.size() <= place) devices_.resize(place + 1);
  if (!devices_[place]) devices_[place] = std::make_unique<Device>(the_driver(), ordinal);
  return *devices_[place];
}

}  // namespace backplane::cuda
