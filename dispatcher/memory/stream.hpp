// Streams of devices: ordering work by tickets, and waiting for it.
//
// Synchronous backends have no streams. Streams of one device are guarded by the device's lock while work is put on
// them; waiting happens outside it.
#pragma once

#include <deque>
#include <functional>
#include <utility>

#include "backplane/abi/backend.h"
#include "memory/plugin_record.hpp"
#include "memory/storage.hpp"

namespace backplane::core {

class Capture;  // memory/capture.hpp

struct Stream {
  enum class Kind : uint8_t { kPlain, kCapture, kImported };
  Device* device = nullptr;
  bp_stream* handle = nullptr;
  uint64_t issued = 0;
  uint64_t flushed = 0;
  uint64_t completed = 0;
  std::deque<std::pair<uint64_t, const char*>> unfinished;         // ticket and op, to name the culprit of an error
  std::deque<std::pair<uint64_t, std::function<void()>>> pending;  // completions of a backend that does not tell
  int32_t priority = 0;
  Kind kind = Kind::kPlain;
  bool retired = false;        // of before its device's reset
  Capture* capture = nullptr;  // which takes what is put on it
};

Stream& current_stream(Device& device);  // of this thread; the default stream unless set
Stream& new_stream(Device& device, int32_t priority = 0, Stream::Kind kind = Stream::Kind::kPlain);
// nullptr: the default one again. Gives what the thread had chosen.
Stream* set_current_stream(Device& device, Stream* stream);

// Under device.lock. Takes the next ticket for `op` after ordering it behind what it must follow of the work on other
// streams that touches these storages: a read behind writes, a write behind all. Notes the uses.
uint64_t issue(Stream& stream, const char* op, bp_storage* const* reads, int n_reads, bp_storage* const* writes,
               int n_writes);
// Flushes and blocks until `ticket`. Throws the stream's deferred error with the name of its op.
void wait_for(Stream& stream, uint64_t ticket);
void synchronize(Device& device);
void refresh_completed(Stream& stream);  // under the device's lock: asks the backend how far it is
void flush(Stream& stream);              // under the device's lock
// Under the device's lock: later work of `stream` comes after a use on another stream of the device.
void order_behind(Stream& stream, const StorageUse& use);
// Under the device's lock: `then` runs once what is on the stream now has ended, failed or been dropped: on a thread of
// the backend's, or where it has no "callbacks" as soon as the host finds out. It must not throw or wait.
void on_complete(Stream& stream, std::function<void()> then);
// Throws for memory of before its device's reset.
void check_current(const bp_storage& storage);

// Before its plugin is closed: waits for and destroys the streams of its devices, frees cached blocks. Throws while
// work cannot end.
void quiesce(PluginRecord* owner);

}  // namespace backplane::core
