// The slots of a device table about streams and tickets, over a class of the backend's.
//
// Not the contract: header-only sugar over bp_backend_def, as backend.hpp.
#pragma once

#include <cstdio>
#include <string>

#include "backplane/plugin/backend.hpp"
#include "backplane/plugin/poll.hpp"

namespace backplane::plugin {

// What the work of a ticket met: bad data, or with another code, that the device has no memory, failed or is lost.
struct DeferredError {
  uint64_t ticket;
  std::string message;
  bp_status code = BP_ERROR_DATA;
};

// For vendors whose functions need nothing of the calling thread.
struct NoScope {
  template <class Device>
  explicit NoScope(const Device&) {}
};

// fill() sets stream_create, stream_destroy, flush, completed, wait, wait_for, stream_wait and deferred_error.
//
// Backend has host() and device(ordinal). A Scope(device) stands around each call. Stream(device) makes a stream, and
// ~Stream waits for the recorded work. A Stream has
//   void flush(uint64_t ticket);
//   uint64_t completed();
//   bp_status wait(uint64_t ticket);                   // the code of an error of the work up to it, or BP_OK
//   void wait_behind(Stream& other, uint64_t ticket);  // later work starts after it
//   bool take_error(DeferredError& out);               // the oldest; false: none
// What waits with a deadline asks `completed`.
template <class Backend, class Stream, class Scope = NoScope>
class StreamSlots {
 public:
  static void fill(bp_backend_def& def) {
    def.stream_create = backend_slot<create>;
    def.stream_destroy = destroy;
    def.flush = backend_slot<flush>;
    def.completed = backend_slot<completed>;
    def.wait = backend_slot<wait>;
    def.stream_wait = backend_slot<wait_behind>;
    def.deferred_error = backend_slot<deferred_error>;
#if BP_TARGET_MINOR >= 3
    def.wait_for = backend_slot<wait_for>;
#endif
  }

 private:
  static Stream& of(bp_stream* stream) { return *reinterpret_cast<Stream*>(stream); }

  static void create(Backend& backend, int32_t ordinal, bp_stream** stream) {
    auto& device = backend.device(ordinal);
    const Scope scope(device);
    *stream = reinterpret_cast<bp_stream*>(new Stream(device));
  }

  // The status is dropped: the slot gives none.
  static void BP_CALL destroy(void* context, int32_t ordinal, bp_stream* stream) {
    Backend& backend = *static_cast<Backend*>(context);
    (void)guard(backend.host(), [&] {
      const Scope scope(backend.device(ordinal));
      delete &of(stream);
    });
  }

  static void flush(Backend& backend, int32_t ordinal, bp_stream* stream, uint64_t ticket) {
    const Scope scope(backend.device(ordinal));
    of(stream).flush(ticket);
  }

  static void completed(Backend& backend, int32_t ordinal, bp_stream* stream, uint64_t* ticket) {
    const Scope scope(backend.device(ordinal));
    *ticket = of(stream).completed();
  }

  static bp_status wait(Backend& backend, int32_t ordinal, bp_stream* stream, uint64_t ticket) {
    const Scope scope(backend.device(ordinal));
    const bp_status status = of(stream).wait(ticket);
    if (status != BP_OK) backend.host()->set_error(status, "recorded work has failed; see deferred_error");
    return status;
  }

  static bp_status wait_for(Backend& backend, int32_t ordinal, bp_stream* stream, uint64_t ticket, uint64_t timeout,
                            int32_t* done) {
    {
      const Scope scope(backend.device(ordinal));
      *done = poll_for(timeout, [&] { return of(stream).completed() >= ticket; });
    }
    return *done ? wait(backend, ordinal, stream, ticket) : BP_OK;
  }

  static void wait_behind(Backend& backend, int32_t ordinal, bp_stream* stream, bp_stream* other, uint64_t ticket) {
    const Scope scope(backend.device(ordinal));
    of(stream).wait_behind(of(other), ticket);
  }

  static void deferred_error(Backend& backend, int32_t ordinal, bp_stream* stream, bp_deferred_error* out) {
    const Scope scope(backend.device(ordinal));
    DeferredError error{};
    const bool found = of(stream).take_error(error);
    out->ticket = error.ticket;
    out->code = found ? error.code : BP_OK;
    std::snprintf(out->message, sizeof(out->message), "%s", error.message.c_str());
  }
};

}  // namespace backplane::plugin
