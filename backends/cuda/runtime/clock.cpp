// Times as distances from an origin that moves; see clock.hpp.
#include "runtime/clock.hpp"

#include <cmath>
#include <utility>

namespace backplane::cuda {
namespace {

constexpr int64_t kFirst = 1'000'000'000;  // ns at the first origin: no stamp is before it, so that none reads 0
constexpr float kFar = 1000;               // ms from the origin: beyond it the origin moves

}  // namespace

Clock::Event Clock::take_event() {
  if (!spare_.empty()) {
    Event event = std::move(spare_.back());
    spare_.pop_back();
    return event;
  }
  driver::Event made = nullptr;
  check(driver_.cuEventCreate(&made, 0), "cuEventCreate");
  return Event(made, [&driver = driver_](driver::Event event) { (void)driver.cuEventDestroy_v2(event); });
}

// On a stream where nothing else runs, since the time between two events is known when both have been reached.
void Clock::start() {
  Event origin = take_event();
  driver::Stream idle = nullptr;
  check(driver_.cuStreamCreateWithPriority(&idle, driver::kStreamNonBlocking, 0), "cuStreamCreateWithPriority");
  const std::unique_ptr<CUstream_st, driver::Result (*)(driver::Stream)> ends(idle, driver_.cuStreamDestroy_v2);
  check(driver_.cuEventRecord(origin.get(), idle), "cuEventRecord");
  wait_until(aborted_, [&] { return is_ready(driver_.cuEventQuery(origin.get()), "cuEventQuery"); });
  origin_ = std::move(origin);
  origin_time_ = kFirst;
}

std::unique_ptr<Stamp> Clock::stamp(const Stream& stream) {
  std::lock_guard lock(mutex_);
  if (!origin_) start();
  auto made = std::make_unique<Stamp>(Stamp{take_event()});
  check(driver_.cuEventRecord(made->event.get(), stream.handle()), "cuEventRecord");
  return made;
}

uint64_t Clock::read(const Stamp& stamp) {
  std::lock_guard lock(mutex_);
  float milliseconds = 0;
  check(driver_.cuEventElapsedTime(&milliseconds, origin_.get(), stamp.event.get()), "cuEventElapsedTime");
  const int64_t time = origin_time_ + std::llround(double{milliseconds} * 1e6);
  if (std::abs(milliseconds) > kFar) origin_ = stamp.event, origin_time_ = time;
  return static_cast<uint64_t>(time);
}

// An event that the clock reads against must not be recorded anew.
void Clock::drop(std::unique_ptr<Stamp> stamp) {
  std::lock_guard lock(mutex_);
  if (stamp->event.use_count() == 1) spare_.push_back(std::move(stamp->event));
}

}  // namespace backplane::cuda
