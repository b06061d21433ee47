// One stream of a device: a CUDA stream, an event per flushed ticket, and what calls may find wrong with their data.
//
// CUDA starts work when it is recorded, so flush only marks the place with an event; events of completed tickets are
// recycled. The recording functions are serialised by the host; completed, wait_for and take_error take a lock of their
// own and may come from any thread. The device's context must be the calling thread's current one. What waits throws
// backplane::Error once the device is given up.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backplane/plugin.hpp"
#include "runtime/abort_flag.hpp"
#include "runtime/arguments.hpp"
#include "runtime/recording.hpp"

namespace backplane::cuda {

struct DeferredError {
  uint64_t ticket;
  std::string message;
};

class Stream {
 public:
  // Throws backplane::Error. Of CUDA's priorities the smaller goes first. `aborted` is the device's.
  explicit Stream(const Driver& driver, const AbortFlag& aborted, int priority = 0);
  // Over a stream of others, which stays theirs.
  Stream(const Driver& driver, const AbortFlag& aborted, driver::Stream foreign)
      : driver_(driver), aborted_(aborted), stream_(foreign), is_ours_(false) {}
  ~Stream();  // waits for what is recorded
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  driver::Stream handle() const { return stream_; }

  void flush(uint64_t ticket);
  uint64_t completed();
  // For at most `timeout` nanoseconds. `done`: whether the ticket is complete. BP_ERROR_DATA: work up to `ticket` has
  // found something wrong with its data; take_error has it.
  bp_status wait_for(uint64_t ticket, uint64_t timeout, bool& done);
  void wait_behind(Stream& other, uint64_t ticket);
  void drain() noexcept;  // waits for what is recorded, and says nothing of what became of it
  void synchronize();     // waits for what is recorded
  bool is_idle();         // has all of it ended? Any thread may ask

  // Where the kernel of a call reports wrong data: an address of the device, valid until the ticket
  // completes, or as long as the recording.
  DataError* expect_error(uint64_t ticket, Checked call);
  // The same of a replay, whose records the block holds in the order of the calls.
  void expect_errors(uint64_t ticket, const std::shared_ptr<HostBlock>& block, std::span<const Checked> calls);
  std::optional<DeferredError> take_error();
  // Memory of the host that work up to the ticket may read.
  void* host_scratch(uint64_t ticket, size_t bytes);

  // From begin to end, work that is put on the stream is recorded and does not run.
  void begin_capture();
  std::unique_ptr<Recording> end_capture();
  void give_capture_up();
  bool is_capturing() const { return captured_ != nullptr; }
  // A copy of memory that is not locked, which has been read when this returns.
  void copy_from_host(driver::Pointer to, const void* from, size_t bytes);

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
    Checked call;
    std::shared_ptr<HostBlock> replays;  // the block of a replay, whose slots are not this stream's
  };
  Event take_event();
  Event event_of(uint64_t ticket);  // nullptr: the ticket is complete
  void collect(uint64_t ticket);    // under the lock
  void add_slots();

  const Driver& driver_;
  const AbortFlag& aborted_;
  driver::Stream stream_ = nullptr;
  const bool is_ours_ = true;
  bool has_captured_ = false;           // whose tickets stand for no work
  std::unique_ptr<Captured> captured_;  // changes under the lock, in the calls that record
  std::mutex mutex_;                    // guards what follows
  std::deque<Mark> marks_;
  std::vector<Event> spare_;
  uint64_t completed_ = 0;
  std::vector<std::unique_ptr<HostBlock>> slots_;
  std::vector<Slot> free_;
  std::deque<Expected> expected_;
  std::deque<DeferredError> errors_;
  std::deque<std::pair<uint64_t, std::unique_ptr<char[]>>> kept_;  // with the ticket that may read it
};

inline driver::Pointer at(void* data, uint64_t offset) { return reinterpret_cast<driver::Pointer>(data) + offset; }
inline Stream& as_stream(bp_stream* stream) { return *reinterpret_cast<Stream*>(stream); }
inline bp_stream* as_handle(Stream& stream) { return reinterpret_cast<bp_stream*>(&stream); }

}  // namespace backplane::cuda
