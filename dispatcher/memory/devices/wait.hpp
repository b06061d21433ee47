// Waiting for a stream in its backend: with a deadline where there is one, and no longer than the device is there.
#pragma once

#include <atomic>
#include <chrono>

#include "memory/devices/stream.hpp"

namespace backplane::core {

// Returns what the backend said once `ticket`, which was flushed, is complete or has failed. Under no lock, inside a
// CallGuard. Throws where the device is lost meanwhile, or its wait_timeout ends: then it is lost from now on.
bp_status wait_in_backend(Stream& stream, uint64_t ticket);

// Around a call of the backend's that waits without a deadline of its own, as a copy to the host does. Inside a
// CallGuard. Where the device has a wait_timeout the call may take that long. After that the device is lost, and
// another thread aborts it, which ends the call where the backend has `abort`.
class TimedCall {
 public:
  TimedCall(Device& device, const char* op);
  ~TimedCall();
  TimedCall(const TimedCall&) = delete;

 private:
  friend struct TimedCalls;
  Device& device_;
  const char* const op_;
  uint64_t timeout_;  // nanoseconds; 0: none
  std::chrono::steady_clock::time_point end_;
  std::atomic<bool> ending_{false};  // the other thread is about to lose the device
};

}  // namespace backplane::core
