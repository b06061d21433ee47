// Whether the host has given a device up, which ends every wait for its work.
//
// CUDA cannot be interrupted in a wait of its own, so the backend asks it again and again, and looks at the flag
// between two questions. Any thread may call anything.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "backplane/error.hpp"
#include "backplane/plugin/poll.hpp"
#include "driver/driver.hpp"

namespace backplane::cuda {

class AbortFlag {
 public:
  void set() { set_.store(true, std::memory_order_release); }
  void clear() { set_.store(false, std::memory_order_release); }  // after a reset
  bool is_set() const { return set_.load(std::memory_order_acquire); }
  // Throws backplane::Error of a device that was given up.
  void check() const { BP_CHECK(!is_set(), DEVICE_LOST, "cuda: the device was given up. Fix: reset it"); }

 private:
  std::atomic<bool> set_{false};
};

inline constexpr uint64_t kNoTimeout = UINT64_MAX;

// Until `done()`. False: the time of `timeout` nanoseconds has ended. Throws what `done` throws, and backplane::Error
// on a device that is given up. It asks without pauses for as long as most work takes: CUDA's own waits spin too.
template <class Done>
bool wait_until(const AbortFlag& aborted, Done done, uint64_t timeout = kNoTimeout) {
  const auto ask = [&] {
    aborted.check();
    return done();
  };
  return plugin::poll_for(timeout, ask, std::chrono::milliseconds(20));
}

// Has the work behind what `call` asks for ended? Throws backplane::Error for a failure.
inline bool is_ready(driver::Result state, const char* call) {
  if (state == driver::kNotReady) return false;
  check(state, call);
  return true;
}

}  // namespace backplane::cuda
