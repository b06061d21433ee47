// What a device is and can do, as the extension "features" names it. The strings live as long as the object.
#pragma once

#include <string>

#include "backplane/abi/device_extensions.h"
#include "driver/driver.hpp"

namespace backplane::cuda {

struct Facts {
  Facts(const Driver& driver, driver::Device device);  // throws backplane::Error

  int capability;  // compute capability: 90 is 9.0
  int multiprocessors, warp_size, shared_memory_per_block, cache_size;
  bool integrated, managed_memory, cooperative_launch;
  std::string capability_name, driver_version, bus;
};

// nullptr past the last.
const char* feature_of(const Facts& facts, uint32_t index);
const char* property_of(const Facts& facts, uint32_t index, bp_value& value);

}  // namespace backplane::cuda
