// Streams, tickets and the memory of asynchronous devices: ordering work, waiting for it, and naming its errors.
#include "memory/stream.hpp"

#include <algorithm>
#include <cstring>

#include "backplane/error.hpp"
#include "memory/allocate.hpp"
#include "memory/device.hpp"
#include "memory/epoch.hpp"

namespace backplane::core {
namespace {

// The streams that this thread chose, by device; most threads choose none.
thread_local std::vector<std::pair<Device*, Stream*>> chosen_streams;

Stream& make_stream(Device& device) {
  const bp_backend_def& def = device.backend->def;
  auto stream = std::make_unique<Stream>();
  stream->device = &device;
  CallGuard guard;
  if (bp_status status = def.stream_create(def.context, device.ordinal, &stream->handle))
    throw_device_error(device, status, "stream_create");
  device.streams.push_back(std::move(stream));
  return *device.streams.back();
}

}  // namespace

void refresh_completed(Stream& stream) {
  const bp_backend_def& def = stream.device->backend->def;
  uint64_t ticket = stream.completed;
  CallGuard guard;
  if (def.completed(def.context, stream.device->ordinal, stream.handle, &ticket) == BP_OK)
    stream.completed = std::max(stream.completed, ticket);
}

namespace {

void flush(Stream& stream) {
  if (stream.flushed == stream.issued) return;
  const bp_backend_def& def = stream.device->backend->def;
  CallGuard guard;
  if (bp_status status = def.flush(def.context, stream.device->ordinal, stream.handle, stream.issued))
    throw_device_error(*stream.device, status, "flush");
  stream.flushed = stream.issued;
}

// Orders `stream` behind a use on another stream of the same device.
void order_behind(Stream& stream, const StorageUse& use) {
  if (!use.stream || use.stream == &stream || use.stream->completed >= use.ticket) return;
  flush(*use.stream);
  const bp_backend_def& def = stream.device->backend->def;
  CallGuard guard;
  if (bp_status status =
          def.stream_wait(def.context, stream.device->ordinal, stream.handle, use.stream->handle, use.ticket))
    throw_device_error(*stream.device, status, "stream_wait");
}

// Takes the stream's error, if it has one, and throws it with the name of the op that recorded the work.
void throw_deferred(Stream& stream, bp_status status) {
  Device& device = *stream.device;
  const bp_backend_def& def = device.backend->def;
  bp_deferred_error error{};
  error.header = BP_HEADER(bp_deferred_error);
  if (BP_HAS(&def, bp_backend_def, deferred_error) && def.deferred_error) {
    CallGuard guard;
    if (def.deferred_error(def.context, device.ordinal, stream.handle, &error) != BP_OK) error.code = BP_OK;
  }
  if (error.code == BP_OK && status == BP_OK) return;
  if (error.code == BP_OK) throw_device_error(device, status, "wait");
  error.message[sizeof error.message - 1] = 0;
  std::string op = "an earlier op";
  for (const auto& [ticket, name] : stream.unfinished)
    if (ticket == error.ticket) op = name;
  std::string text = op + " on device " + name_of(device) + ": " + error.message;
  if (error.code == BP_ERROR_DEVICE_LOST) mark_lost(device, text);
  detail::fail(error.code, text);
}

void forget_finished(Stream& stream) {
  while (!stream.unfinished.empty() && stream.unfinished.front().first <= stream.completed)
    stream.unfinished.pop_front();
}

}  // namespace

Stream& current_stream(Device& device) {
  for (auto& [owner, stream] : chosen_streams)
    if (owner == &device) return *stream;
  if (device.streams.empty()) {
    std::lock_guard guard(device.lock);
    if (device.streams.empty()) {
      device.streams.reserve(64);  // readers look at [0] without the lock
      make_stream(device);
    }
  }
  return *device.streams.front();
}

Stream& new_stream(Device& device) {
  current_stream(device);
  std::lock_guard guard(device.lock);
  BP_CHECK(device.streams.size() < device.streams.capacity(), VALUE, "device ", name_of(device), ": all ",
           device.streams.capacity(), " streams are in use");
  return make_stream(device);
}

void set_current_stream(Device& device, Stream& stream) {
  for (auto& [owner, chosen] : chosen_streams)
    if (owner == &device) {
      chosen = &stream;
      return;
    }
  chosen_streams.emplace_back(&device, &stream);
}

uint64_t issue(Stream& stream, const char* op, bp_storage* const* reads, int n_reads, bp_storage* const* writes,
               int n_writes) {
  const uint64_t ticket = stream.issued + 1;
  const auto behind = [&](const StorageUse& use) { order_behind(stream, use); };
  for (int i = 0; i < n_reads; ++i) behind(reads[i]->uses.write());
  for (int i = 0; i < n_writes; ++i) writes[i]->uses.each(behind);
  for (int i = 0; i < n_reads; ++i) reads[i]->uses.note_read({&stream, ticket});
  for (int i = 0; i < n_writes; ++i) writes[i]->uses.note_write({&stream, ticket});
  stream.issued = ticket;
  if (stream.unfinished.size() >= 4096) {
    refresh_completed(stream);
    forget_finished(stream);
  }
  stream.unfinished.emplace_back(ticket, op);
  return ticket;
}

void wait_for(Stream& stream, uint64_t ticket) {
  Device& device = *stream.device;
  if (device.lost) check_usable(device);
  const bp_backend_def& def = device.backend->def;
  {
    std::lock_guard guard(device.lock);
    if (stream.flushed < ticket) flush(stream);
  }
  bp_status status;
  {
    CallGuard guard;
    status = def.wait(def.context, device.ordinal, stream.handle, ticket);
  }
  std::lock_guard guard(device.lock);
  stream.completed = std::max(stream.completed, ticket);
  throw_deferred(stream, status);
  forget_finished(stream);
}

void synchronize(Device& device) {
  if (device.synchronous()) return;
  check_usable(device);
  for (size_t i = 0; i < device.streams.size(); ++i) wait_for(*device.streams[i], device.streams[i]->issued);
}

namespace {

// Before the host reads the bytes. The stream that wrote them last.
Stream& wait_for_write(Device& device, const bp_storage& storage) {
  StorageUse write;
  {
    std::lock_guard guard(device.lock);
    write = storage.uses.write();
  }
  Stream& stream = write.stream ? *write.stream : current_stream(device);
  wait_for(stream, write.ticket);
  return stream;
}

// Before the host writes the bytes.
void wait_for_uses(Device& device, const bp_storage& storage) {
  std::vector<StorageUse> uses;
  {
    std::lock_guard guard(device.lock);
    if (storage.owner == bp_storage::Owner::kDevice && storage.data) uses = device.pool->uses(storage.data);
    storage.uses.each([&](const StorageUse& use) { uses.push_back(use); });
  }
  for (const StorageUse& use : uses) wait_for(*use.stream, use.ticket);
}

}  // namespace

void copy_from_host(Device& device, bp_storage* dst, uint64_t dst_offset, const void* src, uint64_t size) {
  if (size == 0) return;
  check_usable(device);
  const bp_backend_def& def = device.backend->def;
  if (device.shares_memory()) {
    if (!device.synchronous()) wait_for_uses(device, *dst);
    std::memcpy(static_cast<char*>(dst->data) + dst_offset, src, size);
    return;
  }
  bp_status status;
  if (device.synchronous()) {
    CallGuard guard;
    status = def.copy_from_host(def.context, device.ordinal, nullptr, 0, dst->data, dst_offset, src, size);
  } else {
    Stream& stream = current_stream(device);
    std::lock_guard lock(device.lock);
    uint64_t ticket = issue(stream, "copy_from_host", nullptr, 0, &dst, 1);
    CallGuard guard;
    status = def.copy_from_host(def.context, device.ordinal, stream.handle, ticket, dst->data, dst_offset, src, size);
  }
  if (status != BP_OK) throw_device_error(device, status, "copy_from_host");
}

void copy_within(Device& device, bp_storage* dst, uint64_t dst_offset, bp_storage* src, uint64_t src_offset,
                 uint64_t size) {
  if (size == 0) return;
  check_usable(device);
  const bp_backend_def& def = device.backend->def;
  if (!BP_HAS(&def, bp_backend_def, copy) || !def.copy) {
    std::vector<char> bytes(size);
    copy_to_host(device, src, src_offset, bytes.data(), size);
    copy_from_host(device, dst, dst_offset, bytes.data(), size);
    return;
  }
  bp_status status;
  if (device.synchronous()) {
    CallGuard guard;
    status = def.copy(def.context, device.ordinal, nullptr, 0, dst->data, dst_offset, src->data, src_offset, size);
  } else {
    Stream& stream = current_stream(device);
    std::lock_guard lock(device.lock);
    uint64_t ticket = issue(stream, "copy", &src, 1, &dst, 1);
    CallGuard guard;
    status = def.copy(def.context, device.ordinal, stream.handle, ticket, dst->data, dst_offset, src->data, src_offset,
                      size);
  }
  if (status != BP_OK) throw_device_error(device, status, "copy");
}

void copy_to_host(Device& device, bp_storage* src, uint64_t src_offset, void* dst, uint64_t size) {
  if (size == 0) return;
  check_usable(device);
  const bp_backend_def& def = device.backend->def;
  if (device.shares_memory()) {
    if (!device.synchronous()) wait_for_write(device, *src);
    std::memcpy(dst, static_cast<char*>(src->data) + src_offset, size);
    return;
  }
  bp_status status;
  if (device.synchronous()) {
    CallGuard guard;
    status = def.copy_to_host(def.context, device.ordinal, nullptr, dst, src->data, src_offset, size);
    if (status != BP_OK) throw_device_error(device, status, "copy_to_host");
    return;
  }
  Stream& stream = wait_for_write(device, *src);
  CallGuard guard;
  status = def.copy_to_host(def.context, device.ordinal, stream.handle, dst, src->data, src_offset, size);
  if (status != BP_OK) throw_device_error(device, status, "copy_to_host");
}

void quiesce(PluginRecord* owner) {
  for (uint32_t i = 0; i < backend_count(); ++i) {
    BackendRecord& backend = backend_at(i);
    if (backend.owner != owner) continue;
    for (auto& device : backend.devices) {
      if (!device->synchronous() && !device->lost)
        for (size_t s = 0; s < device->streams.size(); ++s) wait_for(*device->streams[s], device->streams[s]->issued);
      std::lock_guard guard(device->lock);
      for (auto& stream : device->streams) stream->completed = stream->issued;
      empty_pool(*device);
      for (auto& stream : device->streams) {
        CallGuard call;
        backend.def.stream_destroy(backend.def.context, device->ordinal, stream->handle);
      }
      device->streams.clear();
    }
  }
}

}  // namespace backplane::core
