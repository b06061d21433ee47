// Streams, events and recordings as programs hold them. A program borrows a stream of the core; the last
// handle returns it to its device for reuse.
#include "backplane/stream.hpp"

#include <chrono>

#include "memory/devices/capture.hpp"
#include "memory/devices/device.hpp"
#include "memory/devices/stream.hpp"
#include "memory/process/epoch.hpp"
#include "memory/transfer.hpp"

namespace backplane {

struct core::StreamHold {
  StreamHold(Device& on, Stream* of, bool lent) : device(on), stream(of), lent_(lent), generation_(on.generation) {
    lease(device.backend->owner, LeaseKind::kStream);
  }
  ~StreamHold() {
    if (lent_ && stream) {
      std::lock_guard lock(device.lock);
      if (!stream->retired) device.idle_streams.push_back(stream);
    }
    unlease(device.backend->owner, LeaseKind::kStream);
  }
  StreamHold(const StreamHold&) = delete;
  void check() const {
    check_usable(device);
    check_generation();
  }
  // Asked again under the device's lock, which a reset holds from the end of its streams on.
  void check_generation() const {
    BP_CHECK(generation_ == device.generation, DEVICE_LOST, "device ", name_of(device),
             ": the stream was made before the device was reset. Fix: make a new one");
  }

  Device& device;
  Stream* const stream;  // nullptr: the device has none, and its work is done when it is given

 private:
  const bool lent_;
  const uint32_t generation_;
};

// What an event has kept, for the backend's stamp and the time of a device without streams.
struct core::EventState {
  explicit EventState(std::shared_ptr<StreamHold> on) : hold(std::move(on)) {}
  ~EventState() {
    if (!stamp) return;
    Device& device = hold->device;
    std::lock_guard lock(device.lock);
    if (stream().retired) return;  // the reset has ended it
    CallGuard guard;
    device.backend->extensions.time->drop(device.backend->def.context, device.ordinal, stamp);
  }
  EventState(const EventState&) = delete;
  Stream& stream() const { return *hold->stream; }

  const std::shared_ptr<StreamHold> hold;
  uint64_t ticket = 0;
  bp_time_stamp* stamp = nullptr;
  std::chrono::steady_clock::time_point host_time{};
};

using core::await_turn, core::check_usable, core::current_stream, core::last_ticket, core::device_at, core::id_of,
    core::issue, core::name_of;
using core::CallGuard, core::Capture, core::Device, core::EventState, core::StreamHold;
using core::new_stream, core::set_current_stream, core::throw_device_error, core::wait_for;

namespace {

Device& usable(bp_device id) {
  Device& device = device_at(id);
  check_usable(device);
  return device;
}

bool is_done(core::Stream& stream, uint64_t ticket) {
  Device& device = *stream.device;
  check_usable(device);
  {
    std::lock_guard lock(device.lock);
    if (stream.completed < ticket) {
      if (stream.flushed < ticket) flush(stream);
      refresh_completed(stream);
      if (stream.completed < ticket) return false;
    }
  }
  core::check_copies_to_host(stream, ticket);
  return true;
}

void wait_for_position(core::StreamHold& waiting, core::Stream& other, uint64_t ticket) {
  if (!waiting.stream) return wait_for(other, ticket);
  BP_CHECK(!waiting.stream->capture, VALUE, "device ", name_of(waiting.device),
           ": a stream that is being captured waits for nothing. Fix: let the stream of the replay wait");
  if (waiting.stream->device != other.device) {
    if (!wait_for_position_of_peer(*waiting.stream, other, ticket)) wait_for(other, ticket);
    return;
  }
  std::lock_guard lock(waiting.device.lock);
  await_turn(other);
  await_turn(*waiting.stream);
  waiting.check_generation();
  order_behind(*waiting.stream, {&other, ticket});
}

core::Stream* import_stream(Device& device, void* handle) {
  const bp_extension_streams* streams = device.backend->extensions.streams;
  BP_CHECK(streams && streams->import_handle, NOT_IMPLEMENTED, "Stream.from_handle: device ", name_of(device),
           " takes no streams of others (its backend has no import_handle in the extension \"streams\"). Fix: make a "
           "stream with Stream(device)");
  BP_CHECK(handle, VALUE, "Stream.from_handle: found a null handle, expected the vendor's stream");
  current_stream(device);
  std::lock_guard lock(device.lock);
  return &core::new_stream_over(device, handle);
}

const bp_extension_events& events_of(const core::StreamHold& hold, const char* function) {
  const bp_extension_events* events = hold.stream ? hold.device.backend->extensions.events : nullptr;
  BP_CHECK(events, NOT_IMPLEMENTED, function, ": device ", name_of(hold.device),
           " shares no events (its backend has no extension \"events\"). Fix: synchronize the stream");
  BP_CHECK(!hold.stream->capture, VALUE, function, ": the stream is being captured. Fix: call it around the replay");
  return *events;
}

const std::shared_ptr<core::StreamHold>& checked(const std::shared_ptr<core::StreamHold>& hold) {
  BP_CHECK(hold, VALUE, "a default-constructed Stream belongs to no device. Fix: Stream(device)");
  hold->check();
  return hold;
}

}  // namespace

PriorityRange stream_priorities(bp_device id) {
  Device& device = usable(id);
  const bp_extension_streams* streams = device.backend->extensions.streams;
  PriorityRange range{0, 0};
  if (!streams) return range;
  CallGuard guard;
  if (bp_status status =
          streams->priorities(device.backend->def.context, device.ordinal, &range.least, &range.greatest))
    throw_device_error(device, status, "priorities");
  return range;
}

Stream::Stream(bp_device id, int priority) {
  Device& device = usable(id);
  const PriorityRange range = stream_priorities(id);
  BP_CHECK(priority >= range.least && priority <= range.greatest, VALUE, "Stream: argument priority: found ", priority,
           ", expected ", range.least, " to ", range.greatest, " on device ", name_of(device));
  hold_ = std::make_shared<StreamHold>(device, device.synchronous() ? nullptr : &new_stream(device, priority), true);
}

Stream Stream::from_handle(bp_device id, void* handle) {
  Device& device = usable(id);
  return Stream(std::make_shared<StreamHold>(device, import_stream(device, handle), false));
}

Stream Stream::current(bp_device id) {
  Device& device = usable(id);
  return Stream(std::make_shared<StreamHold>(device, device.synchronous() ? nullptr : &current_stream(device), false));
}

bool Stream::operator==(const Stream& other) const {
  if (!hold_ || !other.hold_) return hold_ == other.hold_;
  return &hold_->device == &other.hold_->device && hold_->stream == other.hold_->stream;
}

bp_device Stream::device() const { return id_of(checked(hold_)->device); }

int Stream::priority() const { return checked(hold_)->stream ? hold_->stream->priority : 0; }

void* Stream::handle() const {
  Device& device = checked(hold_)->device;
  const bp_extension_streams* streams = device.backend->extensions.streams;
  BP_CHECK(hold_->stream && streams && streams->handle, NOT_IMPLEMENTED, "Stream.handle: device ", name_of(device),
           " shows none (its backend has no handle in the extension \"streams\")");
  void* handle = nullptr;
  std::lock_guard lock(device.lock);
  await_turn(*hold_->stream);
  hold_->check_generation();
  CallGuard guard;
  if (bp_status status = streams->handle(device.backend->def.context, device.ordinal, hold_->stream->handle, &handle))
    throw_device_error(device, status, "handle of a stream");
  return handle;
}

bool Stream::query() const {
  checked(hold_);
  return !hold_->stream || is_done(*hold_->stream, last_ticket(*hold_->stream));
}

void Stream::synchronize() const {
  if (checked(hold_)->stream) wait_for(*hold_->stream, last_ticket(*hold_->stream));
}

void Stream::wait(const Event& event) const {
  checked(hold_);
  if (!event.state_ || !event.state_->hold->stream || event.state_->stream().retired) return;
  wait_for_position(*hold_, event.state_->stream(), event.state_->ticket);
}

void Stream::wait(const Stream& other) const {
  checked(hold_);
  if (checked(other.hold_)->stream && *this != other)
    wait_for_position(*hold_, *other.hold_->stream, last_ticket(*other.hold_->stream));
}

Event Stream::record() const {
  Event event;
  event.record(*this);
  return event;
}

void Stream::wait_native(void* event) const {
  const bp_extension_events& events = events_of(*checked(hold_), "Stream.wait_native");
  BP_CHECK(event, VALUE, "Stream.wait_native: found a null event, expected the vendor's");
  Device& device = hold_->device;
  core::Stream& stream = *hold_->stream;
  std::lock_guard lock(device.lock);
  await_turn(stream);
  const uint64_t ticket = issue(stream, "wait for an event", nullptr, 0, nullptr, 0);
  CallGuard guard;
  if (bp_status status = events.wait(device.backend->def.context, device.ordinal, stream.handle, ticket, event))
    throw_device_error(device, status, "wait for an event");
}

std::shared_ptr<void> Stream::record_native() const {
  const bp_extension_events& events = events_of(*checked(hold_), "Stream.record_native");
  Device& device = hold_->device;
  core::Stream& stream = *hold_->stream;
  std::lock_guard lock(device.lock);
  await_turn(stream);
  const uint64_t ticket = issue(stream, "event", nullptr, 0, nullptr, 0);
  void* event = nullptr;
  CallGuard guard;
  if (bp_status status = events.record(device.backend->def.context, device.ordinal, stream.handle, ticket, &event))
    throw_device_error(device, status, "record of an event");
  std::shared_ptr<void> held(event, [hold = hold_, release = events.release](void* made) {
    std::lock_guard lock(hold->device.lock);
    if (hold->stream->retired) return;  // the reset has ended it
    CallGuard inside;
    release(hold->device.backend->def.context, hold->device.ordinal, made);
  });
  flush(stream);
  return held;
}

void Stream::on_complete(std::function<void()> then) const {
  checked(hold_);
  if (!hold_->stream) return then();
  std::lock_guard lock(hold_->device.lock);
  hold_->check_generation();
  core::on_complete(*hold_->stream, std::move(then));
}

StreamScope::StreamScope(Stream stream) : stream_(std::move(stream)), before_(nullptr) {
  if (checked(stream_.hold_)->stream) before_ = set_current_stream(stream_.hold_->device, stream_.hold_->stream);
}

StreamScope::~StreamScope() {
  if (stream_.hold_->stream) set_current_stream(stream_.hold_->device, static_cast<core::Stream*>(before_));
}

void Event::record(const Stream& stream) {
  auto state = std::make_shared<EventState>(checked(stream.hold_));
  Device& device = state->hold->device;
  if (!state->hold->stream) {
    state->host_time = std::chrono::steady_clock::now();
  } else {
    std::lock_guard lock(device.lock);
    BP_CHECK(!state->stream().capture, VALUE,
             "Event.record: the stream is being captured. Fix: record around the replay");
    const bp_extension_time* time = device.backend->extensions.time;
    await_turn(state->stream());
    state->ticket = time ? issue(state->stream(), "event", nullptr, 0, nullptr, 0) : state->stream().issued;
    CallGuard guard;
    if (bp_status status = time ? time->stamp(device.backend->def.context, device.ordinal, state->stream().handle,
                                              state->ticket, &state->stamp)
                                : BP_OK)
      throw_device_error(device, status, "stamp");
  }
  state_ = std::move(state);
}

bool Event::query() const {
  return !state_ || !state_->hold->stream || state_->stream().retired || is_done(state_->stream(), state_->ticket);
}

void Event::synchronize() const {
  if (state_ && state_->hold->stream) wait_for(state_->stream(), state_->ticket);
}

double Event::elapsed(const Event& end) const {
  BP_CHECK(state_ && end.state_, VALUE, "Event.elapsed: an event was not recorded. Fix: record both");
  Device& device = state_->hold->device;
  BP_CHECK(&device == &end.state_->hold->device, VALUE, "Event.elapsed: found events of devices ", name_of(device),
           " and ", name_of(end.state_->hold->device), ", expected two of one device");
  if (!state_->hold->stream)
    return std::chrono::duration<double, std::milli>(end.state_->host_time - state_->host_time).count();
  checked(state_->hold);
  checked(end.state_->hold);
  BP_CHECK(state_->stamp && end.state_->stamp, NOT_IMPLEMENTED, "Event.elapsed: device ", name_of(device),
           " has no clock (its backend has no extension \"time\"). Fix: synchronize, and use the host's clock");
  synchronize();
  end.synchronize();
  uint64_t at[2];
  const EventState* states[2] = {state_.get(), end.state_.get()};
  for (int i = 0; i < 2; ++i) {
    CallGuard guard;
    if (bp_status status = device.backend->extensions.time->read(device.backend->def.context, device.ordinal,
                                                                 states[i]->stamp, &at[i]))
      throw_device_error(device, status, "read of a time stamp");
  }
  return static_cast<double>(static_cast<int64_t>(at[1] - at[0])) * 1e-6;
}

Recording::Recording(bp_device device) : capture_(std::make_shared<Capture>(usable(device))) {}

void Recording::end() {
  BP_CHECK(capture_, VALUE, "Recording.end: it is empty. Fix: Recording(device)");
  capture_->end();
}

void Recording::replay() const {
  BP_CHECK(capture_, VALUE, "Recording.replay: it is empty. Fix: Recording(device)");
  capture_->replay(current_stream(capture_->device()));
}

void Recording::replay(const Stream& stream) const {
  BP_CHECK(capture_, VALUE, "Recording.replay: it is empty. Fix: Recording(device)");
  capture_->replay(*checked(stream.hold_)->stream);
}

}  // namespace backplane
