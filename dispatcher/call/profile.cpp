// A profile is a layer above all others, which the calls of a thread meet while one runs there: it notes the time, and
// calls on below itself.
#include "backplane/profile.hpp"

#include <chrono>
#include <utility>

#include "backplane/stream.hpp"
#include "call/dispatch.hpp"
#include "memory/device.hpp"
#include "memory/epoch.hpp"
#include "memory/stream.hpp"
#include "registry/plan.hpp"

namespace backplane {

namespace core {

class ProfileRun {
 public:
  std::vector<ProfileEvent> events;
  std::vector<size_t> open;  // of `events`, the innermost last
  std::vector<std::pair<Event, Event>> stamps;
  std::vector<size_t> stamped;  // the event of each pair
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  bool ended = false;

  int64_t now() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start).count();
  }
  void begin(std::string name, std::string device) {
    open.push_back(events.size());
    events.push_back({std::move(name), std::move(device), static_cast<int>(open.size()) - 1, now(), 0, -1});
  }
  void finish() {
    events[open.back()].end = now();
    open.pop_back();
  }
};

namespace {

thread_local std::shared_ptr<ProfileRun> running;

// The device of the first operand that has memory.
Device* device_of_operands(const Call& call) {
  Device* found = nullptr;
  const auto look = [&](TensorImpl* t) {
    if (!found && t->storage) found = t->storage->device;
  };
  each_tensor(call.args, call.n_args, look);
  each_tensor(call.outs, call.n_outs, look);
  return found;
}

// The vendor's range around a call, and stamps on the device's stream.
class DeviceMarks {
 public:
  DeviceMarks(ProfileRun& run, Device* device, const char* name) : run_(run), device_(device) {
    if (!device_) return;
    const BackendExtensions& offered = device_->backend->extensions;
    stream_ = device_->synchronous() ? nullptr : &current_stream(*device_);
    if (offered.profiler)
      on_stream([&](bp_stream* stream) {
        offered.profiler->begin(device_->backend->def.context, device_->ordinal, stream, name);
      });
    if (!stream_ || !offered.time || stream_->capture) return;
    user_stream_ = backplane::Stream::current(id_of(*device_));
    event_ = run.events.size();
    begin_ = user_stream_.record();
  }
  ~DeviceMarks() {
    if (!device_) return;
    const BackendExtensions& offered = device_->backend->extensions;
    if (offered.profiler)
      on_stream(
          [&](bp_stream* stream) { offered.profiler->end(device_->backend->def.context, device_->ordinal, stream); });
  }
  DeviceMarks(const DeviceMarks&) = delete;
  void finish() {
    if (!user_stream_) return;
    run_.stamps.emplace_back(begin_, user_stream_.record());
    run_.stamped.push_back(event_);
  }

 private:
  // Calls of the table that name one stream come one at a time.
  template <class F>
  void on_stream(F call) {
    if (!stream_) return call(nullptr);
    std::lock_guard lock(device_->lock);
    await_turn(*stream_);
    call(stream_->handle);
  }

  ProfileRun& run_;
  Device* const device_;
  Stream* stream_ = nullptr;
  backplane::Stream user_stream_;
  Event begin_;
  size_t event_ = 0;
};

void profile_call(const Call& call, const KeySlot*) {
  const Call below{call.op, call.args, call.n_args, call.outs, call.n_outs, call.mask & ~kProfileKey};
  const std::shared_ptr<ProfileRun> run = running;
  if (!run) return dispatch(below);
  Device* device = device_of_operands(call);
  DeviceMarks marks(*run, device, call.op.record->def.name);
  run->begin(std::string(call.op.record->name), device ? name_of(*device) : "");
  try {
    dispatch(below);
  } catch (...) {
    run->finish();
    throw;
  }
  run->finish();
  marks.finish();
}

[[gnu::constructor]] void register_profiler() { register_layer(kProfileKey, "profiler", kProfileRank, profile_call); }

}  // namespace
}  // namespace core

Profile::Profile() : run_(std::make_shared<core::ProfileRun>()) {
  BP_CHECK(!core::running, VALUE, "profile: one runs on this thread already. Fix: end it first");
  core::running = run_;
  core::thread_state.included_keys |= core::kProfileKey;
}

Profile::~Profile() {
  if (core::running != run_) return;
  core::running = nullptr;
  core::thread_state.included_keys &= ~core::kProfileKey;
}

void Profile::end() {
  if (run_->ended) return;
  BP_CHECK(core::running == run_, VALUE, "profile: it was started on another thread. Fix: end it there");
  while (!run_->open.empty()) run_->finish();
  core::running = nullptr;
  core::thread_state.included_keys &= ~core::kProfileKey;
  run_->ended = true;
  for (size_t i = 0; i < run_->stamps.size(); ++i)
    run_->events[run_->stamped[i]].device_time =
        static_cast<int64_t>(run_->stamps[i].first.elapsed(run_->stamps[i].second) * 1e6);
  run_->stamps.clear();
}

void Profile::begin_range(const std::string& name) { run_->begin(name, ""); }

void Profile::end_range() {
  BP_CHECK(!run_->open.empty(), VALUE, "profile: no range is open");
  run_->finish();
}

const std::vector<ProfileEvent>& Profile::events() const {
  BP_CHECK(run_->ended, VALUE, "profile: it runs still. Fix: end it first");
  return run_->events;
}

}  // namespace backplane
