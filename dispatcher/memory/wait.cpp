#include "memory/wait.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <optional>
#include <thread>

#include "backplane/stream.hpp"
#include "memory/device.hpp"
#include "memory/epoch.hpp"
#include "memory/loss.hpp"

namespace backplane {

namespace core {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kSlice = 20ms;  // after which a wait looks whether the device is still there
constexpr auto kLongestPause = 1000us;

// Others see for which device this thread waits.
class Waiting {
 public:
  explicit Waiting(const Device& device) { thread_state.waits_for.store(&device, std::memory_order_release); }
  ~Waiting() { thread_state.waits_for.store(nullptr, std::memory_order_release); }
  Waiting(const Waiting&) = delete;
};

class Deadline {
 public:
  explicit Deadline(const Device& device) : timeout_(device.wait_timeout.load(std::memory_order_relaxed)) {
    if (timeout_) end_ = Clock::now() + std::chrono::nanoseconds(timeout_);
  }
  bool is_set() const { return timeout_ != 0; }
  bool is_over() const { return is_set() && Clock::now() >= end_; }
  std::chrono::nanoseconds slice() const {
    return is_set() ? std::clamp<std::chrono::nanoseconds>(end_ - Clock::now(), 1ns, kSlice)
                    : std::chrono::nanoseconds(kSlice);
  }
  double seconds() const { return static_cast<double>(timeout_) * 1e-9; }

 private:
  uint64_t timeout_;
  Clock::time_point end_{};
};

// The op that the stream has come to, as far as the host knows.
std::string current_op(Stream& stream) {
  std::lock_guard lock(stream.device->lock);
  for (const Work& work : stream.unfinished)
    if (work.ticket > stream.completed) return work.op;
  return "its work";
}

void give_up(Stream& stream, const Deadline& deadline) {
  Device& device = *stream.device;
  std::string seconds = std::to_string(deadline.seconds());
  seconds.erase(seconds.find_last_not_of('0') + 1);
  mark_lost(device, current_op(stream) + " has not ended within " + seconds + (seconds.back() == '.' ? "0" : "") +
                        " s (set_wait_timeout). Fix: device.reset()");
  abort_device(device);
  make_usable(device);
}

void look_after(Stream& stream, const Deadline& deadline) {
  check_present(*stream.device);
  if (deadline.is_over()) give_up(stream, deadline);
}

bp_status wait_in_slices(Stream& stream, uint64_t ticket, const Deadline& deadline) {
  const Device& device = *stream.device;
  const bp_backend_def& def = device.backend->def;
  for (;;) {
    int32_t done = 0;
    const bp_status status = def.wait_for(def.context, device.ordinal, stream.handle, ticket,
                                          static_cast<uint64_t>(deadline.slice().count()), &done);
    if (status != BP_OK || done) return status;
    look_after(stream, deadline);
  }
}

bp_status wait_by_asking(Stream& stream, uint64_t ticket, const Deadline& deadline) {
  for (auto pause = 1us;; pause = std::min<std::chrono::microseconds>(pause * 2, kLongestPause)) {
    {
      std::lock_guard lock(stream.device->lock);
      if (stream.retired || stream.completed >= ticket) return BP_OK;
      refresh_completed(stream);
      if (stream.completed >= ticket) return BP_OK;
    }
    look_after(stream, deadline);
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace

bp_status wait_in_backend(Stream& stream, uint64_t ticket) {
  const Device& device = *stream.device;
  const bp_backend_def& def = device.backend->def;
  const Waiting waiting(device);
  const Deadline deadline(device);
  if (BP_HAS(&def, bp_backend_def, wait_for) && def.wait_for) return wait_in_slices(stream, ticket, deadline);
  if (deadline.is_set()) return wait_by_asking(stream, ticket, deadline);
  return def.wait(def.context, device.ordinal, stream.handle, ticket);
}

}  // namespace core

void set_wait_timeout(bp_device id, std::optional<double> seconds) {
  constexpr double kMost = 1e9;
  BP_CHECK(!seconds || (*seconds > 0 && *seconds <= kMost), VALUE, "set_wait_timeout: argument seconds: found ",
           *seconds, ", expected None or a number from above 0 to 1e9");
  core::device_at(id).wait_timeout = seconds ? static_cast<uint64_t>(*seconds * 1e9) : 0;
}

}  // namespace backplane
