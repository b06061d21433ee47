// Streams, events and recordings of work, for programs that order work themselves. Functions throw Error.
//
// Work goes to the thread's current stream of its device: the default one unless a StreamScope says otherwise. Tensors
// need no care: a use on another stream is ordered behind the work that it depends on. On a device without streams all
// work is done when a call returns, and these classes say so.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "backplane/device.hpp"

namespace backplane {

namespace core {
struct StreamHold;
struct EventState;
class Capture;
}  // namespace core

class Event;

// A handle: copies are the same stream. The last one gives it back, whose work goes on.
class BACKPLANE_API Stream {
 public:
  Stream() = default;  // none
  // A new one. A greater priority goes first where the backend offers priorities, and is refused where it does not.
  explicit Stream(bp_device device, int priority = 0);
  // Over the vendor's own stream, which outlives it.
  static Stream from_handle(bp_device device, void* handle);
  // The calling thread's.
  static Stream current(bp_device device);

  explicit operator bool() const { return hold_ != nullptr; }
  bool operator==(const Stream& other) const;
  bp_device device() const;
  int priority() const;
  void* handle() const;  // the vendor's

  bool query() const;  // is its work done?
  void synchronize() const;
  void wait(const Event& event) const;  // later work comes after the event
  void wait(const Stream& other) const;
  Event record() const;
  // Later work comes after `event` of the vendor's API, which its owner has recorded and may destroy afterwards.
  void wait_native(void* event) const;
  // An event of the vendor's API behind the work that is on the stream now, for other libraries. It stays valid for as
  // long as the pointer is held, or until the device is reset.
  std::shared_ptr<void> record_native() const;
  // Runs `then` on any thread when the work that is on the stream now has ended or failed. `then` must not throw and
  // must not call an op. If the backend does not report completion, `then` runs in a later wait.
  void on_complete(std::function<void()> then) const;

 private:
  friend class StreamScope;
  friend class Event;
  friend class Recording;
  explicit Stream(std::shared_ptr<core::StreamHold> hold) : hold_(std::move(hold)) {}
  std::shared_ptr<core::StreamHold> hold_;
};

struct PriorityRange {
  int least, greatest;
};
BACKPLANE_API PriorityRange stream_priorities(bp_device device);

// Makes a stream the calling thread's current stream on its device. Scopes nest.
class BACKPLANE_API StreamScope {
 public:
  explicit StreamScope(Stream stream);
  ~StreamScope();
  StreamScope(const StreamScope&) = delete;

 private:
  Stream stream_;
  void* before_;
};

// A position on a stream, and when the device came there.
class BACKPLANE_API Event {
 public:
  Event() = default;  // not recorded: done
  void record(const Stream& stream);
  bool query() const;
  void synchronize() const;
  // Milliseconds from this one to `end`, of one device; waits for both. Throws Error(BP_ERROR_NOT_IMPLEMENTED) where
  // the backend has no clock (extension "time").
  double elapsed(const Event& end) const;

 private:
  friend class Stream;
  std::shared_ptr<core::EventState> state_;
};

// Work of one device that is recorded once and run many times, over the same memory. Between the constructor and `end`,
// which one thread calls, ops run nothing: their results have values after a replay. New inputs are copied into the
// tensors that the work read.
class BACKPLANE_API Recording {
 public:
  Recording() = default;
  explicit Recording(bp_device device);  // begins
  void end();
  void replay() const;  // on the current stream
  void replay(const Stream& stream) const;

 private:
  std::shared_ptr<core::Capture> capture_;
};

// Host memory that the device reads and writes on its own.
BACKPLANE_API Tensor pin(const Tensor& tensor, bp_device device);
BACKPLANE_API bool is_pinned(const Tensor& tensor) noexcept;
// As to_device without `non_blocking`. With it, between a device and memory that is pinned for it, it returns before
// the copy has run: the caller leaves a source on the host alone, and reads a result there (which is pinned), only once
// the stream has passed the copy.
BACKPLANE_API Tensor to_device(const Tensor& tensor, bp_device device, bool non_blocking);

// How long a wait for the device may take. The default, std::nullopt, has no limit. If the device's work does not end
// in time, the device is lost, and every thread that waits for it raises DeviceLostError.
BACKPLANE_API void set_wait_timeout(bp_device device, std::optional<double> seconds);

// Resets a device, lost or not: drops its work and its memory. Existing tensors are lost, and compiled kernels are
// compiled again. If the backend can abort, or wait with a deadline, hanging calls end; else this waits for them. Other
// devices are not affected.
BACKPLANE_API void reset_device(bp_device device);

}  // namespace backplane
