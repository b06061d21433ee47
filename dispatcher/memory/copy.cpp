// The copies that go through the device table, and those of pinned memory.
#include "memory/copy.hpp"

#include <cstring>
#include <thread>

#include "backplane/error.hpp"
#include "memory/devices/device.hpp"
#include "memory/devices/loss.hpp"
#include "memory/devices/wait.hpp"
#include "memory/granules.hpp"
#include "memory/pinned.hpp"
#include "memory/process/epoch.hpp"

namespace backplane::core {
namespace {

// Before the host reads the bytes. The stream that wrote them last. What a call that still records has written comes
// before what the call puts on its stream next.
Stream& wait_for_write(Device& device, const bp_storage& storage) {
  StorageUse write;
  {
    std::lock_guard guard(device.lock);
    write = storage.uses.write();
    if (write.stream && write.stream->open && write.ticket >= write.stream->open && !device.shares_memory())
      return *write.stream;
  }
  Stream& stream = write.stream ? *write.stream : current_stream(device);
  wait_for(stream, write.ticket);
  check_written(storage);
  return stream;
}

// Under the device's lock. An open call's own work does not count: it ends with the call.
bool has_work(const Stream& stream) { return !stream.open && (stream.waits || stream.completed < stream.issued); }

// Waits with the device's deadline, which the copy itself has only where the backend can abort it. A wait for another
// stream has no ticket of its own, so it gets one.
void wait_for_all(Stream& stream) {
  uint64_t last;
  {
    std::lock_guard guard(stream.device->lock);
    if (!has_work(stream)) return;
    if (stream.waits) issue(stream, "wait", nullptr, 0, nullptr, 0);
    last = stream.issued;
  }
  wait_for(stream, last);
}

// Of a backend's function that may wait. Begins and ends under the device's lock, which it gives back meanwhile. A
// reset comes after it, or before: then it is not called.
template <class F>
bp_status call_unlocked(Stream& stream, const char* op, F call) {
  const CallGuard guard;
  check_present(*stream.device);
  bp_status status;
  {
    const BusyStream busy(stream);
    const TimedCall timed(*stream.device, op);
    status = call();
  }
  if (status == BP_ERROR_DEVICE_LOST) check_present(*stream.device);  // the first cause, where it is known
  return status;
}

// A storage that is written in part is also read, for the rest.
int n_reads_of_write(const bp_storage& dst, uint64_t size) { return size < dst.size ? 1 : 0; }

// Before the host writes the bytes.
void wait_for_uses(Device& device, const bp_storage& storage) {
  std::vector<StorageUse> uses;
  {
    std::lock_guard guard(device.lock);
    storage.uses.each([&](const StorageUse& use) { uses.push_back(use); });
  }
  for (const StorageUse& use : uses) wait_for(*use.stream, use.ticket);
}

}  // namespace

void wait_until_written(const bp_storage& storage) {
  check_current(storage);
  if (storage.device->synchronous()) return;
  StorageUse write;
  {
    std::lock_guard lock(storage.device->lock);
    write = storage.uses.write();
  }
  if (!write.stream) return;
  wait_for(*write.stream, write.ticket);
  check_written(storage);
}

void copy_from_host(Device& device, bp_storage* dst, uint64_t dst_offset, const void* src, uint64_t size) {
  if (size == 0) return;
  check_usable(device);
  check_current(*dst);
  const bp_backend_def& def = device.backend->def;
  if (device.shares_memory()) {
    if (!device.synchronous()) {
      wait_for_uses(device, *dst);
      std::lock_guard lock(device.lock);
      if (size == dst->size) dst->uses.note_write({});  // whatever became of what was written before
    }
    std::memcpy(static_cast<char*>(dst->data) + dst_offset, src, size);
    return;
  }
  if (splits_granules(device, dst_offset, size)) return copy_part_from_host(device, dst, dst_offset, src, size);
  bp_status status;
  if (device.synchronous()) {
    CallGuard guard;
    status = def.copy_from_host(def.context, device.ordinal, nullptr, 0, dst->data, dst_offset, src, size);
    if (status != BP_OK) throw_device_error(device, status, "copy_from_host");
    return;
  }
  Stream& stream = current_stream(device);
  std::lock_guard lock(device.lock);
  const uint64_t ticket = issue(stream, "copy_from_host", &dst, n_reads_of_write(*dst, size), &dst, 1);
  status = call_unlocked(stream, "copy_from_host", [&] {
    return def.copy_from_host(def.context, device.ordinal, stream.handle, ticket, dst->data, dst_offset, src, size);
  });
  if (status != BP_OK) throw_device_error(device, status, "copy_from_host");
}

void copy_within(Device& device, bp_storage* dst, uint64_t dst_offset, bp_storage* src, uint64_t src_offset,
                 uint64_t size) {
  if (size == 0) return;
  check_usable(device);
  check_current(*dst);
  check_current(*src);
  if (splits_granules(device, dst_offset, size) || splits_granules(device, src_offset, size))
    return copy_parts_within(device, dst, dst_offset, src, src_offset, size);
  const bp_backend_def& def = device.backend->def;
  bp_status status;
  if (device.synchronous()) {
    CallGuard guard;
    status = def.copy(def.context, device.ordinal, nullptr, 0, dst->data, dst_offset, src->data, src_offset, size);
  } else {
    Stream& stream = current_stream(device);
    std::lock_guard lock(device.lock);
    bp_storage* reads[] = {src, dst};
    uint64_t ticket = issue(stream, "copy", reads, 1 + n_reads_of_write(*dst, size), &dst, 1);
    CallGuard guard;
    status = def.copy(def.context, device.ordinal, stream.handle, ticket, dst->data, dst_offset, src->data, src_offset,
                      size);
  }
  if (status != BP_OK) throw_device_error(device, status, "copy");
}

void copy_to_host(Device& device, bp_storage* src, uint64_t src_offset, void* dst, uint64_t size) {
  if (size == 0) return;
  check_usable(device);
  check_current(*src);
  const bp_backend_def& def = device.backend->def;
  if (device.shares_memory()) {
    if (!device.synchronous()) wait_for_write(device, *src);
    std::memcpy(dst, static_cast<char*>(src->data) + src_offset, size);
    return;
  }
  if (splits_granules(device, src_offset, size)) return copy_part_to_host(device, src, src_offset, dst, size);
  bp_status status;
  if (device.synchronous()) {
    CallGuard guard;
    status = def.copy_to_host(def.context, device.ordinal, nullptr, dst, src->data, src_offset, size);
    if (status != BP_OK) throw_device_error(device, status, "copy_to_host");
    return;
  }
  Stream& stream = wait_for_write(device, *src);
  // Other threads may put work on the stream between the wait and the lock. Then this one waits again, a few times:
  // more rounds would let a busy thread keep it from its copy.
  constexpr int kMostRounds = 16;
  for (int round = 0;; ++round) {
    wait_for_all(stream);
    std::lock_guard lock(device.lock);
    await_turn(stream);
    if (round < kMostRounds && has_work(stream)) continue;
    const uint64_t ticket = issue(stream, "copy_to_host", &src, 1, nullptr, 0);
    status = call_unlocked(stream, "copy_to_host", [&] {
      return def.copy_to_host(def.context, device.ordinal, stream.handle, dst, src->data, src_offset, size);
    });
    if (status != BP_OK) throw_device_error(device, status, "copy_to_host");
    if (stream.completed + 1 == ticket && !stream.open) stream.completed = ticket;
    return;
  }
}

namespace {

const bp_extension_pinned& pinned_of(Device& device, const bp_storage& host_side) {
  const PinnedBlock* block = pinned_block(host_side);
  BP_CHECK(block && block->backend == device.backend, VALUE, "device ", name_of(device),
           ": an asynchronous copy needs pinned host memory. Fix: x.pin_memory(\"", name_of(device), "\")");
  return *device.backend->extensions.pinned;
}

// Until the stream has come to its end, the copy holds the host's memory.
void keep_until_done(Stream& stream, bp_storage* host_side) {
  retain(host_side);
  try {
    on_complete(stream, [host_side] { release(host_side); });
  } catch (...) {
    release(host_side);
    throw;
  }
}

Stream& stream_for_pinned(Device& device) {
  check_usable(device);
  Stream& stream = current_stream(device);
  BP_CHECK(!stream.capture, VALUE, "device ", name_of(device),
           ": an asynchronous copy of host memory cannot be captured. Fix: copy before the capture, or write into a "
           "tensor of the device and copy that");
  return stream;
}

}  // namespace

uint64_t copy_from_pinned(Device& device, bp_storage* dst, uint64_t dst_offset, bp_storage* src, uint64_t src_offset,
                          uint64_t size) {
  Stream& stream = stream_for_pinned(device);
  const bp_extension_pinned& pinned = pinned_of(device, *src);
  if (splits_granules(device, dst_offset, size)) {
    copy_from_host(device, dst, dst_offset, static_cast<const char*>(src->data) + src_offset, size);
    return stream.issued;
  }
  std::lock_guard lock(device.lock);
  const uint64_t ticket = issue(stream, "copy_from_host", &dst, n_reads_of_write(*dst, size), &dst, 1);
  {
    CallGuard guard;
    if (bp_status status =
            pinned.copy_from_host(device.backend->def.context, device.ordinal, stream.handle, ticket, dst->data,
                                  dst_offset, static_cast<const char*>(src->data) + src_offset, size))
      throw_device_error(device, status, "copy_from_host of pinned memory");
  }
  keep_until_done(stream, src);
  return ticket;
}

uint64_t copy_to_pinned(Device& device, bp_storage* dst, uint64_t dst_offset, bp_storage* src, uint64_t src_offset,
                        uint64_t size) {
  Stream& stream = stream_for_pinned(device);
  const bp_extension_pinned& pinned = pinned_of(device, *dst);
  if (splits_granules(device, src_offset, size)) {
    copy_to_host(device, src, src_offset, static_cast<char*>(dst->data) + dst_offset, size);
    return stream.issued;
  }
  std::lock_guard lock(device.lock);
  const uint64_t ticket = issue(stream, "copy_to_host", &src, 1, nullptr, 0);
  stream.unfinished.back().to_host = std::this_thread::get_id();
  {
    CallGuard guard;
    if (bp_status status = pinned.copy_to_host(device.backend->def.context, device.ordinal, stream.handle, ticket,
                                               static_cast<char*>(dst->data) + dst_offset, src->data, src_offset, size))
      throw_device_error(device, status, "copy_to_host of pinned memory");
  }
  keep_until_done(stream, dst);
  return ticket;
}

}  // namespace backplane::core
