// A stream of CUDA's, an event per flushed ticket, and page-locked memory that work uses until its ticket is complete.
//
// CUDA starts work when it is recorded, so flush only marks the place. The host serialises recording; completed,
// wait and take_error may come from any thread. The device's context is the calling thread's current one.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backplane/plugin.hpp"
#include "backplane/plugin/stream_slots.hpp"
#include "runtime/driver.hpp"

namespace minimal {

// Of data alone: what else fails CUDA reports at every call from then on.
using backplane::plugin::DeferredError;

// Memory that the host and the device reach.
struct Pinned {
  char* host;
  CudaAddress device;
  size_t size;
};

struct Device;

class Stream {
 public:
  explicit Stream(Device& device);
  ~Stream();  // waits for what is recorded
  Stream(const Stream&) = delete;

  Device& device() const { return device_; }
  CudaHandle handle() const { return stream_; }
  // Until `ticket` is complete. With a message: a word of 0; where it is another number then, that is an error.
  Pinned take_pinned(size_t size, uint64_t ticket, std::string message = "");
  void finish() { check(driver().cuStreamSynchronize(stream_), "cuStreamSynchronize"); }

  void flush(uint64_t ticket);
  uint64_t completed();
  bp_status wait(uint64_t ticket);                   // BP_ERROR_DATA where work up to it met bad data
  void wait_behind(Stream& other, uint64_t ticket);  // later work starts after it
  bool take_error(DeferredError& out);

 private:
  using Event = std::shared_ptr<void>;
  struct Mark {
    uint64_t ticket;
    Event event;
  };
  struct Use {
    uint64_t ticket;
    Pinned memory;
    std::string message;
  };
  Event event_of(uint64_t ticket);  // nullptr: the ticket is complete
  void retire_locked(uint64_t ticket);

  Device& device_;
  CudaHandle stream_ = nullptr;
  std::mutex mutex_;  // guards what follows
  uint64_t flushed_ = 0, completed_ = 0;
  std::deque<Mark> marks_;  // unfinished, in order
  std::deque<Use> uses_;    // of unfinished work, in order
  std::vector<Pinned> free_;
  std::deque<DeferredError> errors_;
};

inline Stream& stream_of(bp_stream* stream) { return *reinterpret_cast<Stream*>(stream); }

}  // namespace minimal
