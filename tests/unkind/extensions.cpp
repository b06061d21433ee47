// What the unkind devices offer beyond the device table: a group of functions per extension of the contract, and the
// one that tests steer them by.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>

#include "backplane/abi/device_extensions.h"
#include "backplane/plugin/backend.hpp"
#include "device.hpp"
#include "extension.h"

namespace unkind {
namespace {

using backplane::plugin::backend_slot;

// ---- streams

void priorities(Backend&, int32_t, int32_t* least, int32_t* greatest) {
  *least = -1;
  *greatest = 1;
}

void create(Backend& backend, int32_t ordinal, int32_t priority, bp_stream** stream) {
  *stream = stream_of(*backend.scheduler().add_queue(backend.device(ordinal), priority));
}

const bp_extension_streams kStreams{BP_HEADER(bp_extension_streams), backend_slot<priorities>, backend_slot<create>,
                                    nullptr, nullptr};

// ---- time

struct Stamp {
  uint64_t nanoseconds = 0;
};
using SharedStamp = std::shared_ptr<Stamp>;

void stamp(Backend& backend, int32_t ordinal, bp_stream* stream, uint64_t ticket, bp_time_stamp** out) {
  auto shared = std::make_shared<Stamp>();
  Item item;
  item.ticket = ticket;
  item.what = "a time stamp";
  item.work = [shared] {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    shared->nanoseconds = static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
  };
  backend.scheduler().record(queue_of(stream), std::move(item));
  auto kept = std::make_shared<SharedStamp>(std::move(shared));
  *out = static_cast<bp_time_stamp*>(backend.device(ordinal).handles.keep(std::move(kept)));
}

void read(Backend&, int32_t, bp_time_stamp* stamp, uint64_t* nanoseconds) {
  *nanoseconds = (*reinterpret_cast<SharedStamp*>(stamp))->nanoseconds;
}

void BP_CALL drop(void* context, int32_t ordinal, bp_time_stamp* stamp) {
  static_cast<Backend*>(context)->device(ordinal).handles.drop(stamp);
}

const bp_extension_time kTime{BP_HEADER(bp_extension_time), backend_slot<stamp>, backend_slot<read>, drop};

// ---- callbacks

void notify(Backend& backend, int32_t, bp_stream* stream, uint64_t ticket, bp_completion_fn function, void* argument) {
  Item item;
  item.kind = Item::Kind::kCallback;
  item.ticket = ticket;
  item.what = "a callback";
  item.work = [=] { function(argument); };
  backend.scheduler().record(queue_of(stream), std::move(item));
}

const bp_extension_callbacks kCallbacks{BP_HEADER(bp_extension_callbacks), backend_slot<notify>};

// ---- pinned memory: read and written as late as the stream allows. Freed blocks are overwritten.

class PinnedMemory {
 public:
  void* allocate(uint64_t size) {
    auto made = std::make_shared<std::vector<char>>(size);
    std::lock_guard lock(mutex_);
    return blocks_.emplace(made->data(), made).first->second->data();
  }
  void release(void* data) {
    std::lock_guard lock(mutex_);
    const auto found = blocks_.find(static_cast<const char*>(data));
    BP_CHECK(found != blocks_.end(), VALUE, "unkind: the address to be freed is not the start of pinned memory");
    std::fill(found->second->begin(), found->second->end(), '\xfe');
    blocks_.erase(found);
  }
  bool holds(const void* data, uint64_t size) const {
    const char* begin = static_cast<const char*>(data);
    std::lock_guard lock(mutex_);
    auto found = blocks_.upper_bound(begin);
    return found != blocks_.begin() && begin + size <= (--found)->first + found->second->size();
  }

 private:
  mutable std::mutex mutex_;
  std::map<const char*, std::shared_ptr<std::vector<char>>> blocks_;  // guarded by mutex_
};

// Queues look here until the backend ends, which may be after the process has ended other objects.
PinnedMemory& pinned_memory() {
  static PinnedMemory& memory = *new PinnedMemory;
  return memory;
}

bp_status BP_CALL allocate_pinned(void* context, uint64_t size, void** data) {
  return backplane::plugin::guard(static_cast<Backend*>(context)->host(),
                                  [&] { *data = pinned_memory().allocate(size); });
}

bp_status BP_CALL release_pinned(void* context, void* data, uint64_t) {
  return backplane::plugin::guard(static_cast<Backend*>(context)->host(), [&] { pinned_memory().release(data); });
}

void check_pinned(Backend& backend, const void* data, uint64_t size, const char* when) {
  if (!pinned_memory().holds(data, size))
    backend.scheduler().findings().fail(std::string("a copy of memory that is not pinned ") + when);
}

void copy_from_pinned(Backend& backend, int32_t ordinal, bp_stream* stream, uint64_t ticket, void* dst,
                      uint64_t dst_offset, const void* src, uint64_t size) {
  check_pinned(backend, src, size, "as it is recorded");
  Item item;
  item.ticket = ticket;
  item.what = "copy_from_host of pinned memory";
  char* target = backend.scheduler().resolve(backend.device(ordinal), {dst, dst_offset, size, true}, item.ranges);
  item.work = [=, &backend] {
    check_pinned(backend, src, size, "as it runs");
    std::memcpy(target, src, size);
  };
  backend.scheduler().record(queue_of(stream), std::move(item));
}

void copy_to_pinned(Backend& backend, int32_t ordinal, bp_stream* stream, uint64_t ticket, void* dst, void* src,
                    uint64_t src_offset, uint64_t size) {
  check_pinned(backend, dst, size, "as it is recorded");
  Item item;
  item.ticket = ticket;
  item.what = "copy_to_host of pinned memory";
  const char* source =
      backend.scheduler().resolve(backend.device(ordinal), {src, src_offset, size, false}, item.ranges);
  item.work = [=, &backend] {
    check_pinned(backend, dst, size, "as it runs");
    std::memcpy(dst, source, size);
  };
  backend.scheduler().record(queue_of(stream), std::move(item));
}

const bp_extension_pinned kPinned{BP_HEADER(bp_extension_pinned), allocate_pinned, release_pinned,
                                  backend_slot<copy_from_pinned>, backend_slot<copy_to_pinned>};

// ---- peers: the other devices of the same backend

void agrees(Backend& backend, int32_t, const char* peer, int32_t peer_ordinal, int32_t* yes) {
  *yes = std::strcmp(peer, backend.name()) == 0 && peer_ordinal >= 0 && peer_ordinal < kDeviceCount;
}

void peer_wait(Backend& backend, int32_t, bp_stream* stream, const char*, int32_t, bp_stream* other, uint64_t ticket) {
  backend.scheduler().record_wait(queue_of(stream), queue_of(other), ticket);
}

void peer_copy(Backend& backend, int32_t ordinal, bp_stream* stream, uint64_t ticket, void* dst, uint64_t dst_offset,
               const char*, int32_t peer_ordinal, void* src, uint64_t src_offset, uint64_t size) {
  Item item;
  item.ticket = ticket;
  item.what = "copy from a peer";
  Scheduler& scheduler = backend.scheduler();
  const char* source = scheduler.resolve(backend.device(peer_ordinal), {src, src_offset, size, false}, item.ranges);
  char* target = scheduler.resolve(backend.device(ordinal), {dst, dst_offset, size, true}, item.ranges);
  item.work = [=] { std::memcpy(target, source, size); };
  scheduler.record(queue_of(stream), std::move(item));
}

const bp_extension_peer kPeer{BP_HEADER(bp_extension_peer), backend_slot<agrees>, backend_slot<peer_wait>,
                              backend_slot<peer_copy>};

// ---- memory: of one kind, and a pool that frees a block once its last work has ended

void memory_kind(Backend&, int32_t, uint32_t index, const char** name) { *name = index == 0 ? "device" : nullptr; }

void allocate_kind(Backend& backend, int32_t ordinal, const char*, uint64_t size, uint64_t, void** data) {
  *data = backend.scheduler().allocate(backend.device(ordinal), size);
}

void release_kind(Backend& backend, int32_t ordinal, const char*, void* data, uint64_t) {
  backend.scheduler().release(backend.device(ordinal), data);
}

void take(Backend& backend, int32_t ordinal, bp_stream* stream, uint64_t size, void** data) {
  *data = backend.scheduler().take(backend.device(ordinal), queue_of(stream), size);
}

void give(Backend& backend, int32_t ordinal, void* data, uint64_t, bp_stream* const* streams, const uint64_t* tickets,
          int32_t n) {
  backend.scheduler().give(backend.device(ordinal), data, streams, tickets, n);
}

const bp_extension_memory kMemoryWithPool{
    BP_HEADER(bp_extension_memory), backend_slot<memory_kind>, backend_slot<allocate_kind>,
    backend_slot<release_kind>,     backend_slot<take>,        backend_slot<give>};

// ---- capture

using Recording = std::shared_ptr<std::vector<Item>>;

void begin_capture(Backend& backend, int32_t, bp_stream* stream) {
  backend.scheduler().begin_capture(queue_of(stream));
}

void end_capture(Backend& backend, int32_t ordinal, bp_stream* stream, bp_recording** recording) {
  auto items = std::make_shared<std::vector<Item>>(backend.scheduler().end_capture(queue_of(stream)));
  if (!recording) return;
  auto kept = std::make_shared<Recording>(std::move(items));
  *recording = static_cast<bp_recording*>(backend.device(ordinal).handles.keep(std::move(kept)));
}

void replay(Backend& backend, int32_t, bp_recording* recording, bp_stream* stream, uint64_t ticket) {
  const Recording items = *reinterpret_cast<Recording*>(recording);
  Item item;
  item.ticket = ticket;
  item.what = "a replay";
  for (const Item& each : *items) item.ranges.insert(item.ranges.end(), each.ranges.begin(), each.ranges.end());
  item.work = [items] {
    for (const Item& each : *items) each.work();
  };
  backend.scheduler().record(queue_of(stream), std::move(item));
}

void BP_CALL destroy(void* context, int32_t ordinal, bp_recording* recording) {
  static_cast<Backend*>(context)->device(ordinal).handles.drop(recording);
}

const bp_extension_capture kCapture{BP_HEADER(bp_extension_capture), backend_slot<begin_capture>,
                                    backend_slot<end_capture>, backend_slot<replay>, destroy};

// ---- reset

void reset(Backend& backend, int32_t ordinal) { backend.scheduler().reset(backend.device(ordinal)); }

const bp_extension_reset kReset{BP_HEADER(bp_extension_reset), backend_slot<reset>};

// ---- what tests steer the devices by

bp_status BP_CALL set_plan(void* context, const char* plan) {
  Backend& backend = *static_cast<Backend*>(context);
  return backplane::plugin::guard(backend.host(), [&] { backend.scheduler().set(Plan::parse(plan)); });
}

uint64_t BP_CALL findings(void* context, char* text, uint64_t room) {
  Findings& found = static_cast<Backend*>(context)->scheduler().findings();
  std::snprintf(text, room, "%s", found.first().c_str());
  return found.count();
}

void BP_CALL counts(void* context, char* text, uint64_t room) {
  std::snprintf(text, room, "%s", static_cast<Backend*>(context)->scheduler().counts().c_str());
}

const unkind_extension kUnkind{BP_HEADER(unkind_extension), set_plan, findings, counts};

struct Offer {
  const char* name;
  const void* functions;
};
const Offer kOffers[] = {{BP_EXTENSION_STREAMS, &kStreams},     {BP_EXTENSION_TIME, &kTime},
                         {BP_EXTENSION_CALLBACKS, &kCallbacks}, {BP_EXTENSION_PINNED, &kPinned},
                         {BP_EXTENSION_PEER, &kPeer},           {BP_EXTENSION_CAPTURE, &kCapture},
                         {BP_EXTENSION_RESET, &kReset},         {UNKIND_EXTENSION, &kUnkind}};

}  // namespace

const void* BP_CALL extension(void* context, const char* name, uint32_t version) {
  if (version > 1) return nullptr;
  if (std::strcmp(name, BP_EXTENSION_MEMORY) == 0)
    return static_cast<Backend*>(context)->addressable() ? nullptr : &kMemoryWithPool;
  for (const Offer& offer : kOffers)
    if (std::strcmp(name, offer.name) == 0) return offer.functions;
  return nullptr;
}

}  // namespace unkind
