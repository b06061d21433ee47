// One stream of a device: a CUDA stream, an event per flushed ticket, and what calls may find wrong with their data.
//
// CUDA starts work when it is recorded, so flush only marks the place with an event; events of completed tickets are
// recycled. The recording functions are serialised by the host; completed, wait and take_error take a lock of their own
// and may come from any thread. The device's context must be the calling thread's current one.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "backplane/plugin.hpp"
#include "kernels/arguments.hpp"
#include "runtime/driver.hpp"

namespace backplane::cuda {

struct DeferredError {
  uint64_t ticket;
  std::string message;
};

class Stream {
 public:
  explicit Stream(const Driver& driver);  // throws backplane::Error
  ~Stream();                              // waits for what is recorded
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  driver::Stream handle() const { return stream_; }

  void flush(uint64_t ticket);
  uint64_t completed();
  // BP_ERROR_DATA: work up to `ticket` has found something wrong with its data; take_error has it.
  bp_status wait(uint64_t ticket);
  void wait_behind(Stream& other, uint64_t ticket);
  void synchronize() { check(driver_.cuStreamSynchronize(stream_), "cuStreamSynchronize"); }

  // Where the kernel of a call writes what is wrong with its data: an address of the device, valid until the ticket
  // completes.
  DataError* expect_error(uint64_t ticket, const char* op);
  std::optional<DeferredError> take_error();

 private:
  using Event = std::shared_ptr<CUevent_st>;
  struct Mark {
    uint64_t ticket;
    Event event;
  };
  struct Slot {
    DataError* host;
    DataError* device;
  };
  struct Expected {
    uint64_t ticket;
    Slot slot;
    std::string op;
  };
  Event take_event();
  Event event_of(uint64_t ticket);  // nullptr: the ticket is complete
  void collect(uint64_t ticket);    // under the lock
  void add_slots();

  const Driver& driver_;
  driver::Stream stream_ = nullptr;
  std::mutex mutex_;  // guards what follows
  std::deque<Mark> marks_;
  std::vector<Event> spare_;
  uint64_t completed_ = 0;
  std::vector<void*> pinned_;
  std::vector<Slot> free_;
  std::deque<Expected> expected_;
  std::deque<DeferredError> errors_;
};

inline Stream& as_stream(bp_stream* stream) { return *reinterpret_cast<Stream*>(stream); }

}  // namespace backplane::cuda
