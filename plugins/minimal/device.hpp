// The device behind the backend: memory, and how much of it is in use.
//
// One device, whose kernels run on the processor and are done when they return. Replace what device.cpp does by calls
// of your driver.
#pragma once

#include <atomic>

#include "backplane/plugin.hpp"

namespace minimal {

class Backend {
 public:
  void register_on(const backplane::plugin::Registrar& registrar, const char* name);
  const bp_host* host() const { return host_; }

  std::atomic<uint64_t> in_use{0};  // bytes

 private:
  const bp_host* host_ = nullptr;  // set once, by register_on
};

}  // namespace minimal
