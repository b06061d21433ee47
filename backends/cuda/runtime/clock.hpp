// When a device came to a position of one of its streams: events with the time, relative to an event of the clock.
//
// CUDA gives the milliseconds between two events as a float, exact to 60 ns over a second. So the origin follows the
// stamps that are read. The device's context must be the calling thread's current one; any thread may call.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "runtime/stream.hpp"

namespace backplane::cuda {

struct Stamp {
  std::shared_ptr<CUevent_st> event;
};

class Clock {
 public:
  Clock(const Driver& driver, const AbortFlag& aborted) : driver_(driver), aborted_(aborted) {}
  Clock(const Clock&) = delete;

  std::unique_ptr<Stamp> stamp(const Stream& stream);
  uint64_t read(const Stamp& stamp);  // nanoseconds; of one that has been reached
  void drop(std::unique_ptr<Stamp> stamp);

 private:
  using Event = std::shared_ptr<CUevent_st>;
  Event take_event();  // under the lock, as what follows
  void start();

  const Driver& driver_;
  const AbortFlag& aborted_;
  std::mutex mutex_;  // guards what follows
  Event origin_;
  int64_t origin_time_ = 0;
  std::vector<Event> spare_;
};

}  // namespace backplane::cuda
