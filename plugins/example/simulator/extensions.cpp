// What the simulated devices offer beyond the device table: a group of functions per extension of the contract.
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "backplane/abi/device_extensions.h"
#include "backplane/plugin/backend.hpp"
#include "device.hpp"

namespace sim {
namespace {

using backplane::plugin::backend_slot;

Queue& queue(bp_stream* stream) { return *reinterpret_cast<Queue*>(stream); }
bp_stream* stream_of(Queue& queue) { return reinterpret_cast<bp_stream*>(&queue); }

// ---- streams

void priorities(Backend&, int32_t, int32_t* least, int32_t* greatest) {
  *least = -1;
  *greatest = 1;
}

void create(Backend& backend, int32_t ordinal, int32_t priority, bp_stream** stream) {
  *stream = stream_of(backend.device(ordinal).add_queue(priority));
}

void import_handle(Backend& backend, int32_t ordinal, void* handle, bp_stream** stream) {
  *stream = stream_of(backend.device(ordinal).add_queue_over(*static_cast<Queue*>(handle)));
}

void handle(Backend&, int32_t, bp_stream* stream, void** out) { *out = stream; }

const bp_extension_streams kStreams{BP_HEADER(bp_extension_streams), backend_slot<priorities>, backend_slot<create>,
                                    backend_slot<import_handle>, backend_slot<handle>};

// ---- events: for others of the process, as a vendor's API gives them

class Event {
 public:
  void occur() {
    {
      std::lock_guard lock(mutex_);
      occurred_ = true;
    }
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return occurred_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool occurred_ = false;  // guarded by mutex_
};
using SharedEvent = std::shared_ptr<Event>;

void wait_for_event(Backend&, int32_t, bp_stream* stream, uint64_t ticket, void* event) {
  queue(stream).record_wait(ticket, [held = *static_cast<SharedEvent*>(event)] { held->wait(); });
}

// It occurs also where the work before it was dropped.
void record_event(Backend&, int32_t, bp_stream* stream, uint64_t ticket, void** event) {
  auto made = std::make_unique<SharedEvent>(std::make_shared<Event>());
  queue(stream).record_always(ticket, [held = *made] { held->occur(); });
  *event = made.release();
}

void BP_CALL release_event(void*, int32_t, void* event) { delete static_cast<SharedEvent*>(event); }

const bp_extension_events kEvents{BP_HEADER(bp_extension_events), backend_slot<wait_for_event>,
                                  backend_slot<record_event>, release_event};

// ---- time: the processor's clock, read by the queue's thread

struct Stamp {
  uint64_t nanoseconds = 0;
};

void stamp(Backend&, int32_t, bp_stream* stream, uint64_t ticket, bp_time_stamp** out) {
  auto shared = std::make_shared<Stamp>();
  queue(stream).record(ticket, [shared] {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    shared->nanoseconds = static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
  });
  *out = reinterpret_cast<bp_time_stamp*>(new std::shared_ptr<Stamp>(std::move(shared)));
}

std::shared_ptr<Stamp>* stamp_of(bp_time_stamp* stamp) { return reinterpret_cast<std::shared_ptr<Stamp>*>(stamp); }

void read(Backend&, int32_t, bp_time_stamp* stamp, uint64_t* nanoseconds) {
  *nanoseconds = (*stamp_of(stamp))->nanoseconds;
}

void BP_CALL drop(void*, int32_t, bp_time_stamp* stamp) { delete stamp_of(stamp); }

const bp_extension_time kTime{BP_HEADER(bp_extension_time), backend_slot<stamp>, backend_slot<read>, drop};

// ---- callbacks

void notify(Backend&, int32_t, bp_stream* stream, uint64_t ticket, bp_completion_fn function, void* argument) {
  queue(stream).record_always(ticket, [=] { function(argument); });
}

const bp_extension_callbacks kCallbacks{BP_HEADER(bp_extension_callbacks), backend_slot<notify>};

// ---- pinned memory: pages that the device knows; a copy from others is a fault, as with a real one

class PinnedMemory {
 public:
  void* allocate(uint64_t size) {
    void* data = std::aligned_alloc(kPage, (size + kPage - 1) / kPage * kPage);
    BP_CHECK(data, MEMORY, "sim: no pinned memory for ", size, " bytes");
    std::lock_guard lock(mutex_);
    blocks_.emplace(static_cast<const char*>(data), size);
    return data;
  }
  void release(void* data) {
    {
      std::lock_guard lock(mutex_);
      BP_CHECK(blocks_.erase(static_cast<const char*>(data)), VALUE, "sim: ", data, " is not pinned memory");
    }
    std::free(data);
  }
  void check(const void* data, uint64_t size) const {
    const char* begin = static_cast<const char*>(data);
    std::lock_guard lock(mutex_);
    auto found = blocks_.upper_bound(begin);
    const bool inside = found != blocks_.begin() && begin + size <= (--found)->first + found->second;
    BP_CHECK(inside, DEVICE, "sim: the ", size, " bytes at ", data, " are not pinned memory");
  }

 private:
  static constexpr uint64_t kPage = 4096;
  mutable std::mutex mutex_;
  std::map<const char*, uint64_t> blocks_;  // guarded by mutex_
};

PinnedMemory& pinned_memory() {
  static PinnedMemory memory;
  return memory;
}

bp_status BP_CALL allocate_pinned(void* context, uint64_t size, void** data) {
  return backplane::plugin::guard(static_cast<Backend*>(context)->host(),
                                  [&] { *data = pinned_memory().allocate(size); });
}

bp_status BP_CALL release_pinned(void* context, void* data, uint64_t) {
  return backplane::plugin::guard(static_cast<Backend*>(context)->host(), [&] { pinned_memory().release(data); });
}

void copy_from_pinned(Backend& backend, int32_t ordinal, bp_stream* stream, uint64_t ticket, void* dst,
                      uint64_t dst_offset, const void* src, uint64_t size) {
  pinned_memory().check(src, size);
  char* target = backend.device(ordinal).memory.resolve(dst, dst_offset, size);
  queue(stream).record(ticket, [=] { std::memcpy(target, src, size); });
}

void copy_to_pinned(Backend& backend, int32_t ordinal, bp_stream* stream, uint64_t ticket, void* dst, void* src,
                    uint64_t src_offset, uint64_t size) {
  pinned_memory().check(dst, size);
  const char* source = backend.device(ordinal).memory.resolve(src, src_offset, size);
  queue(stream).record(ticket, [=] { std::memcpy(dst, source, size); });
}

const bp_extension_pinned kPinned{BP_HEADER(bp_extension_pinned), allocate_pinned, release_pinned,
                                  backend_slot<copy_from_pinned>, backend_slot<copy_to_pinned>};

// ---- peers: the other devices of the same backend

void agrees(Backend& backend, int32_t, const char* peer, int32_t peer_ordinal, int32_t* yes) {
  *yes = std::strcmp(peer, backend.name()) == 0 && peer_ordinal >= 0 && peer_ordinal < kDeviceCount;
}

void peer_wait(Backend&, int32_t, bp_stream* stream, const char*, int32_t, bp_stream* other, uint64_t ticket) {
  queue(stream).record_wait(queue(other), ticket);
}

void peer_copy(Backend& backend, int32_t ordinal, bp_stream* stream, uint64_t ticket, void* dst, uint64_t dst_offset,
               const char*, int32_t peer_ordinal, void* src, uint64_t src_offset, uint64_t size) {
  char* target = backend.device(ordinal).memory.resolve(dst, dst_offset, size);
  const char* source = backend.device(peer_ordinal).memory.resolve(src, src_offset, size);
  queue(stream).record(ticket, [=] { std::memcpy(target, source, size); });
}

const bp_extension_peer kPeer{BP_HEADER(bp_extension_peer), backend_slot<agrees>, backend_slot<peer_wait>,
                              backend_slot<peer_copy>};

// ---- features

void feature(Backend& backend, int32_t, uint32_t index, const char** name) {
  const char* const names[] = {"simulated",
                               backend.addressing() == Addressing::kProtected ? "protected_memory" : "memory_handles"};
  *name = index < 2 ? names[index] : nullptr;
}

void property(Backend&, int32_t, uint32_t index, const char** name, bp_value* value) {
  *name = nullptr;
  if (index == 0) {
    *name = "devices";
    value->tag = BP_TAG_INT;
    value->u.i = kDeviceCount;
  } else if (index == 1) {
    *name = "clock";
    value->tag = BP_TAG_STRING;
    value->u.s = "steady";
    value->count = 6;
  } else if (index == 2) {
    *name = "integrated";
    value->tag = BP_TAG_BOOL;
    value->u.i = 0;
  }
}

const bp_extension_features kFeatures{BP_HEADER(bp_extension_features), backend_slot<feature>, backend_slot<property>};

// ---- memory: a small amount of "fast" memory, beside the usual kind

constexpr uint64_t kFastMemory = 1ull << 20;

void memory_kind(Backend&, int32_t, uint32_t index, const char** name) {
  const char* const kinds[] = {"device", "fast"};
  *name = index < 2 ? kinds[index] : nullptr;
}

void allocate_kind(Backend& backend, int32_t ordinal, const char* kind, uint64_t size, uint64_t alignment,
                   void** data) {
  Device& device = backend.device(ordinal);
  device.lost.check();
  const bool fast = std::strcmp(kind, "fast") == 0;
  if (fast) {
    const uint64_t used = device.fast_memory.fetch_add(size) + size;
    if (used > kFastMemory) {
      device.fast_memory -= size;
      throw backplane::Error(BP_ERROR_MEMORY,
                             "sim: of fast memory there are " + std::to_string(kFastMemory) + " bytes");
    }
  }
  try {
    *data = device.memory.allocate(size, alignment);
  } catch (...) {
    if (fast) device.fast_memory -= size;
    throw;
  }
}

void release_kind(Backend& backend, int32_t ordinal, const char* kind, void* data, uint64_t size) {
  Device& device = backend.device(ordinal);
  device.memory.release(data);
  if (std::strcmp(kind, "fast") == 0) device.fast_memory -= size;
}

// The queues tell when a block's last work has ended; until then it waits.
void take(Backend& backend, int32_t ordinal, bp_stream*, uint64_t size, void** data) {
  Device& device = backend.device(ordinal);
  device.lost.check();
  device.release_ended();
  *data = device.memory.allocate(size);
}

void give(Backend& backend, int32_t ordinal, void* data, uint64_t, bp_stream* const* streams, const uint64_t* tickets,
          int32_t n) {
  backend.device(ordinal).give(data, streams, tickets, n);
}

const bp_extension_memory kMemory{BP_HEADER(bp_extension_memory),
                                  backend_slot<memory_kind>,
                                  backend_slot<allocate_kind>,
                                  backend_slot<release_kind>,
                                  nullptr,
                                  nullptr};
const bp_extension_memory kMemoryWithPool{
    BP_HEADER(bp_extension_memory), backend_slot<memory_kind>, backend_slot<allocate_kind>,
    backend_slot<release_kind>,     backend_slot<take>,        backend_slot<give>};

// ---- capture

using Recording = std::vector<Queue::Work>;

void begin_capture(Backend&, int32_t, bp_stream* stream) { queue(stream).begin_capture(); }

void end_capture(Backend&, int32_t, bp_stream* stream, bp_recording** recording) {
  Recording works = queue(stream).end_capture();
  if (recording)
    *recording = reinterpret_cast<bp_recording*>(new std::shared_ptr<Recording>(new Recording(std::move(works))));
}

std::shared_ptr<Recording>* recording_of(bp_recording* recording) {
  return reinterpret_cast<std::shared_ptr<Recording>*>(recording);
}

void replay(Backend&, int32_t, bp_recording* recording, bp_stream* stream, uint64_t ticket) {
  queue(stream).record(ticket, [works = *recording_of(recording)] {
    for (const Queue::Work& work : *works) work();
  });
}

void BP_CALL destroy(void*, int32_t, bp_recording* recording) { delete recording_of(recording); }

const bp_extension_capture kCapture{BP_HEADER(bp_extension_capture), backend_slot<begin_capture>,
                                    backend_slot<end_capture>, backend_slot<replay>, destroy};

// ---- reset

void reset(Backend& backend, int32_t ordinal) { backend.device(ordinal).reset(); }

const bp_extension_reset kReset{BP_HEADER(bp_extension_reset), backend_slot<reset>};

// ---- profiler: the ranges go to the file that BACKPLANE_SIM_MARKS names, a line each

std::mutex marks_mutex;

void write_mark(const char* what, const char* name) {
  const char* path = std::getenv("BACKPLANE_SIM_MARKS");
  if (!path) return;
  std::lock_guard lock(marks_mutex);
  if (std::FILE* file = std::fopen(path, "a")) {
    std::fprintf(file, "%s %s\n", what, name);
    std::fclose(file);
  }
}

void BP_CALL begin_range(void*, int32_t, bp_stream*, const char* name) { write_mark("begin", name); }
void BP_CALL end_range(void*, int32_t, bp_stream*) { write_mark("end", ""); }

const bp_extension_profiler kProfiler{BP_HEADER(bp_extension_profiler), begin_range, end_range};

struct Offer {
  const char* name;
  const void* functions;
};
const Offer kOffers[] = {{BP_EXTENSION_STREAMS, &kStreams},   {BP_EXTENSION_EVENTS, &kEvents},
                         {BP_EXTENSION_TIME, &kTime},         {BP_EXTENSION_CALLBACKS, &kCallbacks},
                         {BP_EXTENSION_PINNED, &kPinned},     {BP_EXTENSION_PEER, &kPeer},
                         {BP_EXTENSION_FEATURES, &kFeatures}, {BP_EXTENSION_CAPTURE, &kCapture},
                         {BP_EXTENSION_PROFILER, &kProfiler}, {BP_EXTENSION_RESET, &kReset}};

}  // namespace

const void* BP_CALL extension(void* context, const char* name, uint32_t version) {
  if (version <= 1 && std::strcmp(name, BP_EXTENSION_MEMORY) == 0) {
    const bool pool = static_cast<Backend*>(context)->addressing() == Addressing::kHandle;
    return pool ? &kMemoryWithPool : &kMemory;
  }
  for (const Offer& offer : kOffers)
    if (version <= 1 && std::strcmp(name, offer.name) == 0) return offer.functions;
  return nullptr;
}

}  // namespace sim
