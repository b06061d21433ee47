// Streams, tickets and the memory of asynchronous devices: ordering work, waiting for it, and naming its errors.
#include "memory/devices/stream.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <span>
#include <string_view>

#include "backplane/error.hpp"
#include "memory/allocate.hpp"
#include "memory/devices/capture.hpp"
#include "memory/devices/device.hpp"
#include "memory/devices/loss.hpp"
#include "memory/devices/wait.hpp"
#include "memory/memory_kinds.hpp"
#include "memory/pinned.hpp"
#include "memory/process/epoch.hpp"
#include "memory/process/foreign_call.hpp"

namespace backplane::core {
namespace {

// The streams that this thread chose, by device; most threads choose none.
thread_local std::vector<std::pair<Device*, Stream*>> chosen_streams;

Stream& make_stream(Device& device, int32_t priority, Stream::Kind kind) {
  const bp_backend_def& def = device.backend->def;
  auto stream = std::make_unique<Stream>();
  stream->device = &device;
  stream->priority = priority;
  stream->kind = kind;
  const bp_extension_streams* streams = device.backend->extensions.streams;
  CallGuard guard;
  if (bp_status status = priority && streams ? streams->create(def.context, device.ordinal, priority, &stream->handle)
                                             : def.stream_create(def.context, device.ordinal, &stream->handle))
    throw_device_error(device, status, "stream_create");
  BP_CHECK(stream->handle, DEVICE, "device ", name_of(device),
           ": stream_create gave BP_OK and NULL; expected a stream");
  device.streams.push_back(std::move(stream));
  return *device.streams.back();
}

constexpr size_t kMostUnsettled = 4096;  // pieces of work after which a stream that nobody waits for is looked at
constexpr size_t kMaxStreams = 1024;     // readers look at the default one without the lock, so that none may move

// Runs the callbacks of completed work, without the device's lock.
struct Completions {
  std::vector<std::function<void()>> ready;
  void take(Stream& stream) {
    while (!stream.pending.empty() && stream.pending.front().first <= stream.completed) {
      ready.push_back(std::move(stream.pending.front().second));
      stream.pending.pop_front();
    }
  }
  ~Completions() {
    for (const auto& then : ready) then();
  }
};

}  // namespace

BusyStream::BusyStream(Stream& stream) : stream_(stream), unlocked_(stream.device->lock.held_once()) {
  await_turn(stream);
  stream.busy = true;
  if (unlocked_) stream.device->lock.unlock();
}

// Not under the device's lock, which somebody who waits for the stream may hold.
BusyStream::~BusyStream() {
  stream_.busy = false;
  stream_.busy.notify_all();
  if (unlocked_) stream_.device->lock.lock();
}

void await_turn(Stream& stream) {
  Lock& lock = stream.device->lock;
  while (stream.busy) {
    const bool open = lock.held_once();
    if (open) lock.unlock();
    stream.busy.wait(true);
    if (open) lock.lock();
  }
}

uint64_t last_ticket(Stream& stream) {
  std::lock_guard guard(stream.device->lock);
  return stream.open ? stream.open - 1 : stream.issued;
}

void refresh_completed(Stream& stream) {
  if (stream.busy) return;
  const bp_backend_def& def = stream.device->backend->def;
  uint64_t ticket = stream.completed;
  CallGuard guard;
  if (call_foreign("completed",
                   [&] { return def.completed(def.context, stream.device->ordinal, stream.handle, &ticket); }) == BP_OK)
    stream.completed = std::max(stream.completed, ticket);
}

void flush(Stream& stream) {
  await_turn(stream);
  const uint64_t ticket = stream.open ? stream.open - 1 : stream.issued;
  if (stream.flushed >= ticket) return;
  const bp_backend_def& def = stream.device->backend->def;
  CallGuard guard;
  if (bp_status status =
          call_foreign("flush", [&] { return def.flush(def.context, stream.device->ordinal, stream.handle, ticket); }))
    throw_device_error(*stream.device, status, "flush");
  stream.flushed = ticket;
}

namespace {

void check_ended(const Stream& stream, uint64_t ticket) {
  BP_CHECK(!stream.open || ticket < stream.open, VALUE, "device ", name_of(*stream.device),
           ": a kernel waits for work of its own call, which ends after it has returned. Fix: register the kernel with "
           "BP_KERNEL_CALLS_OPS if it records nothing itself");
}

}  // namespace

void order_behind(Stream& stream, const StorageUse& use) {
  if (!use.stream || use.stream == &stream || has_ended(use)) return;
  check_ended(*use.stream, use.ticket);
  flush(*use.stream);
  const bp_backend_def& def = stream.device->backend->def;
  CallGuard guard;
  if (bp_status status = call_foreign("stream_wait", [&] {
        return def.stream_wait(def.context, stream.device->ordinal, stream.handle, use.stream->handle, use.ticket);
      }))
    throw_device_error(*stream.device, status, "stream_wait");
  stream.waits = true;
}

// By a capture that this thread began and another one gave up.
static bool was_captured(const Stream& stream) { return stream.kind == Stream::Kind::kCapture && !stream.capture; }

Stream& current_stream(Device& device) {
  for (auto& [owner, stream] : chosen_streams)
    if (owner == &device && !stream->retired && !was_captured(*stream)) return *stream;
  if (Stream* made = device.default_stream.load(std::memory_order_acquire)) return *made;
  std::lock_guard guard(device.lock);
  if (device.streams.empty()) {
    device.streams.reserve(kMaxStreams);
    device.default_stream.store(&make_stream(device, 0, Stream::Kind::kPlain), std::memory_order_release);
  }
  return *device.streams.front();
}

Stream& new_stream(Device& device, int32_t priority, Stream::Kind kind) {
  current_stream(device);
  std::lock_guard guard(device.lock);
  const auto idle = std::find_if(device.idle_streams.begin(), device.idle_streams.end(),
                                 [&](Stream* s) { return s->priority == priority && s->kind == kind; });
  if (idle != device.idle_streams.end()) {
    Stream* found = *idle;
    device.idle_streams.erase(idle);
    return *found;
  }
  BP_CHECK(device.streams.size() < kMaxStreams, VALUE, "device ", name_of(device), ": all ", kMaxStreams,
           " streams are in use. Fix: drop those that are not needed");
  return make_stream(device, priority, kind);
}

Stream& new_stream_over(Device& device, void* handle) {
  BP_CHECK(device.streams.size() < kMaxStreams, VALUE, "device ", name_of(device),
           ": all streams are in use. Fix: drop those that are not needed");
  auto made = std::make_unique<Stream>();
  made->device = &device;
  made->kind = Stream::Kind::kImported;
  made->foreign = handle;
  CallGuard guard;
  if (bp_status status = device.backend->extensions.streams->import_handle(device.backend->def.context, device.ordinal,
                                                                           handle, &made->handle))
    throw_device_error(device, status, "import of a stream");
  device.streams.push_back(std::move(made));
  return *device.streams.back();
}

Stream* set_current_stream(Device& device, Stream* stream) {
  const auto chosen =
      std::find_if(chosen_streams.begin(), chosen_streams.end(), [&](const auto& row) { return row.first == &device; });
  if (chosen == chosen_streams.end()) {
    if (stream) chosen_streams.emplace_back(&device, stream);
    return nullptr;
  }
  Stream* const before = chosen->second;
  if (stream)
    chosen->second = stream;
  else
    chosen_streams.erase(chosen);
  return before;
}

void check_current(const bp_storage& storage) {
  BP_CHECK(
      storage.generation == storage.device->generation.load(std::memory_order_relaxed), DEVICE_LOST,
      "a tensor on device ", name_of(*storage.device),
      " was made before the device was reset, and its elements are lost. Fix: create it again, or load it from where "
      "it was saved");
}

namespace {

// Of those that `issue` makes calls on. To wait for one gives the device's lock back, so it comes before all else.
Stream* first_busy(Stream& stream, std::span<bp_storage* const> reads, std::span<bp_storage* const> writes) {
  if (stream.busy) return &stream;
  Stream* found = nullptr;
  const auto look = [&](const StorageUse& use) {
    if (use.stream && use.stream != &stream && use.stream->busy && !has_ended(use)) found = use.stream;
  };
  for (bp_storage* storage : reads) look(storage->uses.write());
  for (bp_storage* storage : writes) storage->uses.each(look);
  return found;
}

}  // namespace

uint64_t issue(Stream& stream, const char* op, bp_storage* const* reads, int n_reads, bp_storage* const* writes,
               int n_writes) {
  check_usable(*stream.device);  // it may have been lost since the caller looked
  const std::span read(reads, static_cast<size_t>(n_reads)), written(writes, static_cast<size_t>(n_writes));
  while (Stream* other = first_busy(stream, read, written)) await_turn(*other);
  BP_CHECK(!stream.retired, DEVICE_LOST, "device ", name_of(*stream.device),
           ": the stream was made before the device was reset. Fix: make a new one");
  for (int i = 0; i < n_reads; ++i) check_current(*reads[i]);
  for (int i = 0; i < n_writes; ++i) check_current(*writes[i]);
  const uint64_t ticket = stream.open ? stream.open : stream.issued + 1;
  Work work{ticket, op, {}};
  for (int i = 0; i < n_reads; ++i) depend_on(work, *reads[i]);
  if (stream.capture) {
    stream.capture->take(reads, n_reads, writes, n_writes);
    return stream.issued = ticket;
  }
  const auto behind = [&](const StorageUse& use) { order_behind(stream, use); };
  for (int i = 0; i < n_reads; ++i) behind(reads[i]->uses.write());
  for (int i = 0; i < n_writes; ++i) writes[i]->uses.each(behind);
  for (int i = 0; i < n_reads; ++i) reads[i]->uses.note_read({&stream, ticket});
  for (int i = 0; i < n_writes; ++i) writes[i]->uses.note_write({&stream, ticket});
  if (ticket == stream.open) {
    auto& read = stream.unfinished.back().read;
    read.insert(read.end(), work.read.begin(), work.read.end());
    return ticket;
  }
  stream.issued = ticket;
  stream.waits = false;
  stream.unfinished.push_back(std::move(work));
  if (stream.unfinished.size() % kMostUnsettled == 0) {
    for (const auto& each : stream.device->streams) refresh_completed(*each);
    settle(*stream.device);
  }
  return ticket;
}

// Under the device's lock, after a wait for `ticket` that gave `status`. The errors that the backend had of the stream.
static int note_waited(Stream& stream, uint64_t ticket, bp_status status) {
  int errors = 0;
  Device& device = *stream.device;
  if (stream.retired) check_present(device);  // the device was reset meanwhile
  BP_CHECK(!stream.retired, DEVICE_LOST, "device ", name_of(device),
           ": was reset while this thread waited for its work, which is lost");
  if (status != BP_OK) {
    await_turn(stream);
    errors = collect(stream);
  }
  note_loss(device, status);
  // What a lost device does with its memory nobody knows: it stays in use until the reset.
  if (device.state != DeviceState::kReady) return errors;
  stream.completed = std::max(stream.completed, ticket);
  settle(device);
  return errors;
}

void wait_for(Stream& stream, uint64_t ticket) {
  Device& device = *stream.device;
  std::vector<std::shared_ptr<const void>> unneeded;  // ends without the lock
  Completions completions;
  // A reset runs before or after all of it, never in between. Otherwise, an answer of the backend about the old
  // device would count for the new one. This thread would also wait for the lock that the reset holds.
  const CallGuard whole;
  check_present(device);
  if (stream.retired) return;
  BP_CHECK(!stream.capture, VALUE, "device ", name_of(device),
           ": a capture computes no values before it is replayed. Fix: read tensors after the capture's "
           "block, when recording.replay() has run");
  {
    std::lock_guard guard(device.lock);
    check_ended(stream, ticket);
    if (stream.flushed < ticket) flush(stream);
  }
  const bp_status status = wait_in_backend(stream, ticket);
  bool outermost = false;
  int errors = 0;
  {
    std::lock_guard guard(device.lock);
    outermost = device.lock.held_once();
    errors = note_waited(stream, ticket, status);
    if (device.state == DeviceState::kReady) {
      completions.take(stream);
      unneeded = take_unneeded(device);
    }
  }
  // Which may ask other devices: nobody does that under a device's lock.
  if (outermost && device.state == DeviceState::kReady) finish_copies_to_host(stream, ticket);
  std::lock_guard guard(device.lock);
  const bool silent = errors == 0 && stream.unseen.empty();
  throw_unseen(stream);
  check_present(device);
  if (status != BP_OK && silent) throw_device_error(device, status, "wait");
}

void synchronize(Device& device) {
  if (device.synchronous()) return;
  check_usable(device);
  std::vector<std::pair<Stream*, uint64_t>> all;
  {
    std::lock_guard guard(device.lock);
    for (const auto& stream : device.streams)
      if (stream->kind != Stream::Kind::kCapture) all.emplace_back(stream.get(), last_ticket(*stream));
  }
  for (const auto& [stream, ticket] : all) wait_for(*stream, ticket);
}

void on_complete(Stream& stream, std::function<void()> then) {
  BP_CHECK(!stream.capture, VALUE, "device ", name_of(*stream.device),
           ": a stream that is being captured completes nothing. Fix: ask after the capture's block");
  const bp_extension_callbacks* callbacks = stream.device->backend->extensions.callbacks;
  if (!callbacks) {
    stream.pending.emplace_back(stream.issued, std::move(then));
    return;
  }
  await_turn(stream);
  flush(stream);  // or the work before it would end only with the function
  const uint64_t ticket = issue(stream, "callback", nullptr, 0, nullptr, 0);
  auto kept = std::make_unique<std::function<void()>>(std::move(then));
  const auto run = [](void* argument) {
    const std::unique_ptr<std::function<void()>> mine(static_cast<std::function<void()>*>(argument));
    (*mine)();
  };
  CallGuard guard;
  if (bp_status status = callbacks->notify(stream.device->backend->def.context, stream.device->ordinal, stream.handle,
                                           ticket, run, kept.get()))
    throw_device_error(*stream.device, status, "notify");
  kept.release();
  // It comes without another call of the host.
  flush(stream);
}

void quiesce(PluginRecord* owner) {
  for (uint32_t i = 0; i < backend_count(); ++i) {
    BackendRecord& backend = backend_at(i);
    if (backend.owner != owner) continue;
    for (auto& device : backend.devices) {
      if (!device->synchronous() && device->state == DeviceState::kReady)
        for (size_t s = 0; s < device->streams.size(); ++s)
          if (device->streams[s]->kind != Stream::Kind::kCapture)  // whose work runs on the streams of its replays
            wait_for(*device->streams[s], last_ticket(*device->streams[s]));
      Completions completions;  // run without the lock
      std::vector<std::shared_ptr<const void>> unneeded;
      forget_work_of(*device);
      std::lock_guard guard(device->lock);
      for (auto& stream : device->streams) {
        stream->completed = stream->issued;
        completions.take(*stream);
      }
      take_freed(*device);
      unneeded = take_unneeded(*device);
      empty_pool(*device);
      for (auto& stream : device->streams) {
        CallGuard call;
        (void)call_foreign("stream_destroy", [&] {
          backend.def.stream_destroy(backend.def.context, device->ordinal, stream->handle);
          return BP_OK;
        });
      }
      if (backend.extensions.pinned) empty_pinned(backend);
      if (backend.extensions.memory) reclaim_kinds(*device);
      device->default_stream = nullptr;
      device->streams.clear();
      device->idle_streams.clear();
      device->retired.clear();
    }
  }
}

}  // namespace backplane::core
