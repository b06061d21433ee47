// Streams of devices: ordering work by tickets, waiting for it, moving bytes.
//
// Synchronous backends have no streams. Streams of one device are guarded by the device's lock while work is put on
// them; waiting happens outside it.
#pragma once

#include <deque>
#include <utility>

#include "backplane/abi/backend.h"
#include "memory/plugin_record.hpp"
#include "memory/storage.hpp"

namespace backplane::core {

struct Stream {
  Device* device = nullptr;
  bp_stream* handle = nullptr;
  uint64_t issued = 0;
  uint64_t flushed = 0;
  uint64_t completed = 0;
  std::deque<std::pair<uint64_t, const char*>> unfinished;  // ticket and op, to name the culprit of an error
};

Stream& current_stream(Device& device);  // of this thread; the default stream unless set
Stream& new_stream(Device& device);
void set_current_stream(Device& device, Stream& stream);

// Under device.lock. Takes the next ticket for `op` after ordering it behind what it must follow of the work on other
// streams that touches these storages: a read behind writes, a write behind all. Notes the uses.
uint64_t issue(Stream& stream, const char* op, bp_storage* const* reads, int n_reads, bp_storage* const* writes,
               int n_writes);
// Flushes and blocks until `ticket`. Throws the stream's deferred error with the name of its op.
void wait_for(Stream& stream, uint64_t ticket);
void synchronize(Device& device);
void refresh_completed(Stream& stream);  // under the device's lock: asks the backend how far it is

void copy_from_host(Device& device, bp_storage* dst, uint64_t dst_offset, const void* src, uint64_t size);
void copy_to_host(Device& device, bp_storage* src, uint64_t src_offset, void* dst, uint64_t size);
// Bytes from one storage of the device to another, in the order of the current stream.
void copy_within(Device& device, bp_storage* dst, uint64_t dst_offset, bp_storage* src, uint64_t src_offset,
                 uint64_t size);
// Before its plugin is closed: waits for and destroys the streams of its devices, frees cached blocks. Throws while
// work cannot end.
void quiesce(PluginRecord* owner);

}  // namespace backplane::core
