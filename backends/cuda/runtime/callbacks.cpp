// Each function is put on the stream with an event behind it, for which the thread waits; see callbacks.hpp.
#include "runtime/callbacks.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace backplane::cuda {

void Callbacks::stop() {
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Callbacks::~Callbacks() {
  stop();
  for (const driver::Event event : spare_) (void)driver_.cuEventDestroy_v2(event);
}

driver::Event Callbacks::take_event() {
  {
    std::lock_guard lock(mutex_);
    if (!spare_.empty()) {
      const driver::Event event = spare_.back();
      spare_.pop_back();
      return event;
    }
  }
  driver::Event made = nullptr;
  check(driver_.cuEventCreate(&made, driver::kEventDisableTiming), "cuEventCreate");
  return made;
}

void Callbacks::notify(Stream& stream, bp_completion_fn function, void* argument) {
  const auto call = std::make_shared<Call>();
  call->owner = this, call->stream = &stream, call->function = function, call->argument = argument;
  driver::Event event = take_event();
  {
    std::lock_guard lock(mutex_);
    unfinished_.push_back(call.get());
  }
  if (const driver::Result put = driver_.cuLaunchHostFunc(stream.handle(), run_for_cuda, call.get())) {
    std::lock_guard lock(mutex_);
    std::erase(unfinished_, call.get());
    spare_.push_back(event);
    check(put, "cuLaunchHostFunc");
  }
  // From here on it will be called, so that nothing may fail.
  if (driver_.cuEventRecord(event, stream.handle()) != driver::kSuccess) {
    (void)driver_.cuEventDestroy_v2(event);
    event = nullptr;
  }
  {
    std::lock_guard lock(mutex_);
    watched_.push_back({call, event});
    if (!thread_.joinable()) thread_ = std::thread([this] { watch(); });
  }
  changed_.notify_all();
}

void Callbacks::run_for_cuda(void* call) {
  Call& mine = *static_cast<Call*>(call);
  mine.owner->run(mine);
}

void Callbacks::run(Call& call) {
  if (call.taken.exchange(true)) return;
  call.function(call.argument);
  // Under the lock, since who waits may end this object.
  std::lock_guard lock(mutex_);
  std::erase(unfinished_, &call);
  changed_.notify_all();
}

void Callbacks::wait(const Stream& stream) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] {
    return std::none_of(unfinished_.begin(), unfinished_.end(),
                        [&](const Call* call) { return call->stream == &stream; });
  });
}

// Until it has been reached. False: it never will be. The thread sleeps, since nothing waits for it.
bool Callbacks::comes(driver::Event event) const {
  constexpr auto kPause = std::chrono::microseconds(200);
  for (;;) {
    if (aborted_.is_set()) return false;
    const driver::Result state = driver_.cuEventQuery(event);
    if (state != driver::kNotReady) return state == driver::kSuccess;
    std::this_thread::sleep_for(kPause);
  }
}

void Callbacks::watch() {
  (void)driver_.cuCtxPushCurrent_v2(context_);
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return closing_ || !watched_.empty(); });
    if (watched_.empty()) return;
    Watched next = std::move(watched_.front());
    watched_.pop_front();
    lock.unlock();
    const bool lost = !next.behind || !comes(next.behind);
    if (lost) run(*next.call);
    lock.lock();
    if (lost) dropped_.push_back(std::move(next.call));
    if (next.behind) spare_.push_back(next.behind);
  }
}

}  // namespace backplane::cuda
