#include "memory/devices/wait.hpp"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "backplane/stream.hpp"
#include "memory/devices/device.hpp"
#include "memory/devices/loss.hpp"
#include "memory/fork.hpp"
#include "memory/process/epoch.hpp"
#include "memory/process/foreign_call.hpp"
#include "memory/process/interrupt.hpp"
#include "memory/process/lock.hpp"

namespace backplane {

namespace core {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kSlice = 20ms;  // after which a wait looks whether the device is still there
constexpr auto kLongestPause = 1000us;
constexpr auto kBusyTime = 50us;  // in which a wait does not sleep

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
  uint64_t timeout() const { return timeout_; }

 private:
  uint64_t timeout_;
  Clock::time_point end_{};
};

// The oldest unfinished op. If the backend completes several tickets at once, a later op may be the one that
// hangs, so the text also names the last.
std::string current_op(Stream& stream) {
  std::lock_guard lock(stream.device->lock);
  refresh_completed(stream);
  const char *first = nullptr, *last = nullptr;
  for (const Work& work : stream.unfinished) {
    if (work.ticket <= stream.completed) continue;
    last = work.op;
    if (!first) first = last;
  }
  if (!first) return "its work";
  return std::strcmp(first, last) == 0 ? first : std::string(first) + ", or a call behind it up to " + last + ",";
}

void lose_late(Device& device, const std::string& op, uint64_t timeout) {
  std::string seconds = std::to_string(static_cast<double>(timeout) * 1e-9);
  seconds.erase(seconds.find_last_not_of('0') + 1);
  device.hangs = true;
  mark_lost(device,
            op + " has not ended within " + seconds + (seconds.back() == '.' ? "0" : "") +
                " s (set_wait_timeout). Fix: " + (device.backend->extensions.reset ? "device.reset()" : kNoReset));
  abort_device(device);
}

void give_up(Stream& stream, const Deadline& deadline) {
  lose_late(*stream.device, current_op(stream), deadline.timeout());
  make_usable(*stream.device);
}

void look_after(Stream& stream, const Deadline& deadline) {
  check_interrupt();
  check_present(*stream.device);
  if (deadline.is_over()) give_up(stream, deadline);
}

bp_status wait_in_slices(Stream& stream, uint64_t ticket, const Deadline& deadline) {
  const Device& device = *stream.device;
  const bp_backend_def& def = device.backend->def;
  for (;;) {
    int32_t done = 0;
    const auto slice = static_cast<uint64_t>(deadline.slice().count());
    const bp_status status = call_foreign(
        "wait_for", [&] { return def.wait_for(def.context, device.ordinal, stream.handle, ticket, slice, &done); });
    if (status != BP_OK || done) return status;
    look_after(stream, deadline);
  }
}

bp_status wait_by_asking(Stream& stream, uint64_t ticket, const Deadline& deadline) {
  const auto start = Clock::now();
  for (;;) {
    {
      std::lock_guard lock(stream.device->lock);
      if (stream.retired || stream.completed >= ticket) return BP_OK;
      refresh_completed(stream);
      if (stream.completed >= ticket) return BP_OK;
    }
    look_after(stream, deadline);
    // An eighth of the time so far, so that a wait ends at most that much too late.
    const auto passed = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start);
    if (passed < kBusyTime)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::min<std::chrono::microseconds>(passed / 8, kLongestPause));
  }
}

}  // namespace

bp_status wait_in_backend(Stream& stream, uint64_t ticket) {
  const Device& device = *stream.device;
  const bp_backend_def& def = device.backend->def;
  const Waiting waiting(device);
  const Deadline deadline(device);
  if (BP_HAS(&def, bp_backend_def, wait_for) && def.wait_for) return wait_in_slices(stream, ticket, deadline);
  if (deadline.is_set() || has_interrupt_check()) return wait_by_asking(stream, ticket, deadline);
  return call_foreign("wait", [&] { return def.wait(def.context, device.ordinal, stream.handle, ticket); });
}

static StaticLock timed_calls_lock{LockRank::kPool};

// The calls that have a deadline, and the thread that looks after them. It is started with the first one, and sleeps
// through the process's exit. A forked child has neither.
struct TimedCalls {
  void add(TimedCall& call) {
    std::lock_guard guard(timed_calls_lock);
    if (generation != fork_generation()) {
      calls.clear();
      has_thread = false;
    }
    generation = fork_generation();
    if (!has_thread) start_thread();
    calls.push_back(&call);
    count = static_cast<uint32_t>(calls.size());
    count.notify_all();
  }

  void remove(TimedCall& call) {
    for (;;) {
      call.ending_.wait(true);
      std::lock_guard guard(timed_calls_lock);
      if (call.ending_) continue;
      std::erase(calls, &call);
      count = static_cast<uint32_t>(calls.size());
      return;
    }
  }

 private:
  // Under the lock. Signals are left to the program's own threads. Without the thread calls have no deadline.
  void start_thread() {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      std::thread thread([this] { run(); });
      pthread_setname_np(thread.native_handle(), "backplane");
      thread.detach();
      has_thread = true;
    } catch (const std::system_error&) {
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void run() {
    for (;;) {
      count.wait(0);
      for (TimedCall* late; (late = next_late());) {
        lose_late(late->device_, late->op_, late->timeout_);
        std::lock_guard guard(timed_calls_lock);
        late->ending_ = false;
        late->ending_.notify_all();
      }
      std::this_thread::sleep_for(kPause);
    }
  }

  // Each once. Its call does not return before `ending_` is false again.
  TimedCall* next_late() {
    std::lock_guard guard(timed_calls_lock);
    const auto now = Clock::now();
    const auto late =
        std::find_if(calls.begin(), calls.end(), [&](const TimedCall* call) { return call->end_ <= now; });
    if (late == calls.end()) return nullptr;
    TimedCall* const found = *late;
    found->ending_ = true;
    calls.erase(late);
    count = static_cast<uint32_t>(calls.size());
    return found;
  }

  static constexpr auto kPause = 2ms;
  std::vector<TimedCall*> calls;  // guarded by timed_calls_lock, as what follows
  uint32_t generation = 0;
  bool has_thread = false;
  std::atomic<uint32_t> count{0};  // of `calls`; the thread sleeps while it is 0
};

static TimedCalls& timed_calls() {
  static TimedCalls& calls = *new TimedCalls;
  return calls;
}

TimedCall::TimedCall(Device& device, const char* op)
    : device_(device), op_(op), timeout_(device.wait_timeout.load(std::memory_order_relaxed)) {
  if (timeout_ == 0) return;
  end_ = Clock::now() + std::chrono::nanoseconds(timeout_);
  timed_calls().add(*this);
}

TimedCall::~TimedCall() {
  if (timeout_ == 0) return;
  timed_calls().remove(*this);
}

}  // namespace core

void set_wait_timeout(bp_device id, std::optional<double> seconds) {
  constexpr double kMost = 1e9;
  BP_CHECK(!seconds || (*seconds > 0 && *seconds <= kMost), VALUE, "set_wait_timeout: argument seconds: found ",
           *seconds, ", expected None or a number from above 0 to 1e9");
  core::device_at(id).wait_timeout = seconds ? static_cast<uint64_t>(*seconds * 1e9) : 0;
}

}  // namespace backplane
