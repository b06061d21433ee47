// Streams of devices: ordering work by tickets, and waiting for it.
//
// Synchronous backends have no streams. Streams of one device are guarded by the device's lock while work is put on
// them; waiting happens outside it.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <utility>

#include "backplane/abi/backend.h"
#include "memory/devices/failures.hpp"
#include "memory/process/plugin_record.hpp"
#include "memory/storage.hpp"

namespace backplane::core {

class Capture;  // memory/devices/capture.hpp

struct Stream {
  enum class Kind : uint8_t { kPlain, kCapture, kImported };
  Device* device = nullptr;
  bp_stream* handle = nullptr;
  uint64_t issued = 0;
  uint64_t open = 0;  // the ticket under which a call records work now; 0: none
  uint64_t flushed = 0;
  uint64_t completed = 0;
  bool waits = false;             // for another stream, behind its last ticket
  std::atomic<bool> busy{false};  // a call of the backend's that may wait has the stream: see BusyStream
  uint64_t collected = 0;         // errors of the work up to here have been taken from the backend
  // The outcomes of the work up to here are known: it failed where `failures` says so.
  std::atomic<uint64_t> settled{0};
  std::atomic<uint64_t> failed{0};                        // how many `failures` are
  std::deque<Work> unfinished;                            // whose outcome is not known, in the order of their tickets
  std::map<uint64_t, std::shared_ptr<Failure>> failures;  // by ticket; see failures.cpp for its lock
  std::deque<std::shared_ptr<Failure>> unseen;            // that no wait has raised yet
  std::deque<SpoiledCopy> spoiled_copies;                 // the latest
  std::deque<std::pair<uint64_t, std::function<void()>>> pending;  // completions of a backend that does not tell
  int32_t priority = 0;
  Kind kind = Kind::kPlain;
  bool retired = false;        // of before its device's reset
  Capture* capture = nullptr;  // which takes what is put on it
  void* foreign = nullptr;     // kImported: the vendor's handle
};

// As far as the host knows.
inline bool has_ended(const StorageUse& use) { return use.stream->completed >= use.ticket; }

Stream& current_stream(Device& device);  // of this thread; the default stream unless set
Stream& new_stream(Device& device, int32_t priority = 0, Stream::Kind kind = Stream::Kind::kPlain);
// Under the device's lock: over the vendor's own, which outlives it. The backend offers it.
Stream& new_stream_over(Device& device, void* handle);
// nullptr: the default one again. Gives what the thread had chosen.
Stream* set_current_stream(Device& device, Stream* stream);

// Under device.lock. Takes the next ticket for `op`, and orders it behind the work that it must follow on other
// streams, by the storages: a read behind writes, a write behind all. Notes the uses. A call inside of one
// that records on the stream has that one's ticket. A storage that is written in part is among the `reads` too, for the
// rest of it. Throws if the data of a storage is known to come from failed work.
uint64_t issue(Stream& stream, const char* op, bp_storage* const* reads, int n_reads, bp_storage* const* writes,
               int n_writes);
// Under device.lock: a ticket while work is recorded under it. Nothing flushes or waits for it before this ends.
class OpenTicket {
 public:
  OpenTicket(Stream& stream, const char* op, bp_storage* const* reads, int n_reads, bp_storage* const* writes,
             int n_writes)
      : stream_(stream), outer_(stream.open), ticket_(issue(stream, op, reads, n_reads, writes, n_writes)) {
    stream.open = ticket_;
  }
  ~OpenTicket() { stream_.open = outer_; }
  OpenTicket(const OpenTicket&) = delete;
  operator uint64_t() const { return ticket_; }

 private:
  Stream& stream_;
  const uint64_t outer_;
  const uint64_t ticket_;
};
// Around a call of the backend's that names the stream and may wait for the device. Begins under device.lock, which it
// releases meanwhile; other users of the stream wait. Inside a call that records work the lock stays.
class BusyStream {
 public:
  explicit BusyStream(Stream& stream);
  ~BusyStream();
  BusyStream(const BusyStream&) = delete;

 private:
  Stream& stream_;
  const bool unlocked_;
};
// Under device.lock, which it may give back meanwhile: until no call that may wait has the stream.
void await_turn(Stream& stream);
uint64_t last_ticket(Stream& stream);  // of what may be waited for
// Flushes and blocks until `ticket`, at most for the device's wait_timeout. Throws the stream's oldest error that
// nobody has seen, with the name of its op.
void wait_for(Stream& stream, uint64_t ticket);
void synchronize(Device& device);
void refresh_completed(Stream& stream);  // under the device's lock: asks the backend how far it is
void flush(Stream& stream);              // under the device's lock
// Under the device's lock: later work of `stream` comes after a use on another stream of the device.
void order_behind(Stream& stream, const StorageUse& use);
// Under the device's lock: `then` runs once the stream's current work has ended, failed or been dropped: on a thread of
// the backend's, or where it has no "callbacks" as soon as the host finds out. It must not throw or wait.
void on_complete(Stream& stream, std::function<void()> then);
// Throws for memory of before its device's reset.
void check_current(const bp_storage& storage);

// Before its plugin is closed: waits for and destroys the streams of its devices, frees cached blocks. Throws while
// work cannot end.
void quiesce(PluginRecord* owner);

}  // namespace backplane::core
