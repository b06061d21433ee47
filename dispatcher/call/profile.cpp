// A profile is a layer above all others, which the calls of a thread meet while one runs there: it notes the time, and
// calls on below itself.
#include "call/profile.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <utility>

#include "backplane/device.hpp"
#include "backplane/profile.hpp"
#include "backplane/stream.hpp"
#include "call/dispatch.hpp"
#include "memory/devices/device.hpp"
#include "memory/devices/stream.hpp"
#include "memory/process/epoch.hpp"
#include "record/dtype_rules.hpp"
#include "record/flop_counts.hpp"
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
  std::function<std::string()> where;
  Profile::Observer observe;
  bool ended = false;
  bool memory_counts = false;  // was a backend asked yet?
  int64_t next_memory = 0;     // when it is asked again

  int64_t now() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start).count();
  }
  ProfileEvent& begin(std::string name, const char* kind, std::string device, std::string line = {}) {
    open.push_back(events.size());
    const int depth = static_cast<int>(open.size()) - 1;
    events.push_back({std::move(name), kind, std::move(device), depth, 0, 0, -1, std::move(line), -1, -1, -1});
    events.back().begin = now();
    return events.back();
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

// A backend may need long to count: it is asked once in so many nanoseconds.
constexpr int64_t kMemoryInterval = 1'000'000;

// Notes the memory that is allocated on the device at the end of an event.
void note_memory(ProfileRun& run, const Device& device, ProfileEvent& event) {
  if (run.memory_counts && event.end < run.next_memory) return;
  run.memory_counts = true;
  run.next_memory = event.end + kMemoryInterval;
  try {
    event.memory = static_cast<int64_t>(memory_stats(id_of(device)).allocated);
  } catch (const Error&) {
    run.next_memory = std::numeric_limits<int64_t>::max();  // the backend does not count
  }
}

int64_t bytes_of_call(const Call& call) {
  int64_t sum = 0;
  const auto add = [&](TensorImpl* t) { sum += element_count(*t) * static_cast<int64_t>(kItemSize[t->dtype]); };
  if (call.op.flags & BP_OP_VIEW) return 0;
  each_tensor(call.args, call.n_args, add);
  each_tensor(call.outs, call.n_outs, add);
  return sum;
}

// Of a primitive; -1 for an op that is composed of others.
int64_t flops_of_call(const Call& call) {
  const char* family = call.op.record->def.family;
  const std::optional<Counts> counts = family ? counts_of(family) : std::nullopt;
  if (!counts || call.n_outs < 1 || call.outs[0].tag != BP_TAG_TENSOR) return -1;
  if (*counts == Counts::kNothing) return 0;
  const bool reads = call.n_args > 0 && call.args[0].tag == BP_TAG_TENSOR;
  const TensorImpl* first = reads ? impl(call.args[0].u.t) : nullptr;
  const int64_t made = element_count(*impl(call.outs[0].u.t));
  if (*counts == Counts::kResult) return made;
  if (!first) return -1;
  if (*counts == Counts::kArgument) return element_count(*first);
  return first->dl.ndim ? 2 * made * first->dl.shape[first->dl.ndim - 1] : -1;
}

void observe_call(const ProfileRun& run, const Call& call) {
  bp_value before[kMaxResults];
  std::copy(call.outs, call.outs + call.n_outs, before);
  dispatch(call);
  std::vector<Tensor> results;
  each_tensor(call.outs, call.n_outs, [&](TensorImpl* t) {
    retain(t);
    results.push_back(Tensor::adopt(t));
  });
  thread_state.included_keys &= ~kProfileKey;  // the observer's own calls
  try {
    run.observe(std::string(call.op.record->name), results);
  } catch (...) {
    thread_state.included_keys |= kProfileKey;
    release_outputs(call.outs, call.n_outs, before);
    throw;
  }
  thread_state.included_keys |= kProfileKey;
}

void profile_call(const Call& call, const KeySlot*) {
  const Call below{call.op, call.args, call.n_args, call.outs, call.n_outs, call.mask & ~kProfileKey};
  const std::shared_ptr<ProfileRun> run = running;
  if (!run || (thread_state.included_keys & kEveryCallKey)) return dispatch(below);  // a trace runs nothing
  if (run->observe) return observe_call(*run, below);
  Device* device = device_of_operands(call);
  DeviceMarks marks(*run, device, call.op.record->def.name);
  const size_t event = run->events.size();
  run->begin(std::string(call.op.record->name), "op", device ? name_of(*device) : "", run->where ? run->where() : "");
  try {
    dispatch(below);
  } catch (...) {
    run->finish();
    throw;
  }
  run->finish();
  marks.finish();
  run->events[event].bytes = bytes_of_call(below);
  run->events[event].flops = flops_of_call(below);
  if (device) note_memory(*run, *device, run->events[event]);
}

[[gnu::constructor]] void register_profiler() { register_layer(kProfileKey, "profiler", kProfileRank, profile_call); }

}  // namespace

bool profile_observes() noexcept { return running && running->observe; }

bp_status run_profiled(const StepFacts& facts, Device& device, const std::function<bp_status()>& step) {
  const std::shared_ptr<ProfileRun> run = running;
  if (!run) return step();
  DeviceMarks marks(*run, &device, facts.name.c_str());
  const size_t index = run->events.size();
  ProfileEvent& event = run->begin(facts.name, facts.kind, name_of(device), facts.line);
  event.bytes = facts.bytes;
  event.flops = facts.flops;
  const bp_status status = step();
  run->finish();
  marks.finish();
  note_memory(*run, device, run->events[index]);
  return status;
}

}  // namespace core

Profile::Profile(std::function<std::string()> where, Observer observe) : run_(std::make_shared<core::ProfileRun>()) {
  BP_CHECK(!core::running, VALUE, "profile: another profile runs on this thread already. Fix: end it first");
  run_->where = std::move(where);
  run_->observe = std::move(observe);
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

void Profile::begin_range(const std::string& name) { run_->begin(name, "range", ""); }

void Profile::end_range() {
  BP_CHECK(!run_->open.empty(), VALUE, "profile: no range is open");
  run_->finish();
}

const std::vector<ProfileEvent>& Profile::events() const {
  BP_CHECK(run_->ended, VALUE, "profile: the profile is still running. Fix: end it first");
  return run_->events;
}

}  // namespace backplane
