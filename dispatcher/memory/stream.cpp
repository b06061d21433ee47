// Streams, tickets and the memory of asynchronous devices: ordering work, waiting for it, and naming its errors.
#include "memory/stream.hpp"

#include <algorithm>
#include <cstring>

#include "backplane/error.hpp"
#include "memory/device.hpp"
#include "memory/epoch.hpp"
#include "memory/memory.hpp"

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

// Under the device's lock.
void refresh_completed(Stream& stream) {
  const bp_backend_def& def = stream.device->backend->def;
  uint64_t ticket = stream.completed;
  CallGuard guard;
  if (def.completed(def.context, stream.device->ordinal, stream.handle, &ticket) == BP_OK)
    stream.completed = std::max(stream.completed, ticket);
}

bool is_complete(const StorageUse& use) { return !use.stream || use.stream->completed >= use.ticket; }

void flush(Stream& stream) {
  if (stream.flushed == stream.issued) return;
  const bp_backend_def& def = stream.device->backend->def;
  CallGuard guard;
  if (bp_status status = def.flush(def.context, stream.device->ordinal, stream.handle, stream.issued))
    throw_device_error(*stream.device, status, "flush");
  stream.flushed = stream.issued;
}

// Orders `stream` behind a use on another stream of the same device.
void order_behind(Stream& stream, StorageUse& use) {
  if (!use.stream || use.stream == &stream) return;
  if (use.stream->completed >= use.ticket) return;
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

// Under the device's lock: gives back to the backend what nothing uses any more.
void trim_freed(Device& device, bool everything) {
  const bp_backend_def& def = device.backend->def;
  uint64_t held = 0;
  for (const auto& block : device.freed) held += block.size;
  // Keep a quarter of the device's memory for reuse; beyond that, return completed blocks, oldest first.
  const uint64_t limit = everything ? 0 : std::max<uint64_t>(device.properties.total_memory / 4, uint64_t{64} << 20);
  if (held <= limit) return;
  auto keep = std::remove_if(device.freed.begin(), device.freed.end(), [&](Device::Block& block) {
    if (held <= limit || !is_complete(block.use)) return false;
    held -= block.size;
    CallGuard guard;
    def.deallocate(def.context, device.ordinal, block.data, block.size);
    return true;
  });
  device.freed.erase(keep, device.freed.end());
}

uint64_t rounded(uint64_t size) {
  // Blocks of a few sizes are reused more often; 1/8 of waste at most above 4 KiB.
  if (size <= 4096) return (size + 511) / 512 * 512;
  uint64_t step = uint64_t{1} << (60 - __builtin_clzll(size));
  return (size + step - 1) / step * step;
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
  uint64_t ticket = stream.issued + 1;
  for (int i = 0; i < n_reads; ++i) order_behind(stream, reads[i]->last_write);
  for (int i = 0; i < n_writes; ++i) {
    order_behind(stream, writes[i]->last_write);
    order_behind(stream, writes[i]->last_read);
  }
  // A storage keeps its latest read only: an earlier reader on a third stream is ordered before this one now.
  for (int i = 0; i < n_reads; ++i) {
    order_behind(stream, reads[i]->last_read);
    reads[i]->last_read = {&stream, ticket};
  }
  for (int i = 0; i < n_writes; ++i) writes[i]->last_write = {&stream, ticket};
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

void* allocate(Device& device, uint64_t size) {
  const bp_backend_def& def = device.backend->def;
  void* data = nullptr;
  bp_status status;
  if (!device.synchronous()) {
    Stream& stream = current_stream(device);
    std::lock_guard guard(device.lock);
    size = rounded(size);
    for (int pass = 0; pass < 2; ++pass) {
      for (size_t i = device.freed.size(); i-- > 0;) {
        Device::Block& block = device.freed[i];
        if (block.size != size || (block.use.stream != &stream && !is_complete(block.use))) continue;
        data = block.data;
        device.freed.erase(device.freed.begin() + static_cast<ptrdiff_t>(i));
        return data;
      }
      if (pass == 0)
        for (auto& s : device.streams) refresh_completed(*s);
    }
  }
  {
    CallGuard guard;
    status = def.allocate(def.context, device.ordinal, size, &data);
  }
  return status == BP_OK ? data : allocate_again(device, size, status);
}

void trim_freed(Device& device) {
  std::lock_guard guard(device.lock);
  trim_freed(device, true);
}

// In a forked child: the backend's own locks may be as another thread of the parent held them.
[[gnu::cold, gnu::noinline]] static bool may_deallocate(Device& device) noexcept {
  try {
    restart_after_fork(device);
    return true;
  } catch (const Error&) {
    return false;  // it is the parent's
  }
}

void deallocate(Device& device, void* data, uint64_t size, StorageUse last) noexcept {
  const bp_backend_def& def = device.backend->def;
  if (device.fork_generation != fork_generation() && !may_deallocate(device)) [[unlikely]]
    return;
  if (device.synchronous()) {
    CallGuard guard;
    def.deallocate(def.context, device.ordinal, data, size);
    return;
  }
  std::lock_guard guard(device.lock);
  device.freed.push_back({data, rounded(size), last});
  trim_freed(device, false);
}

void copy_from_host(Device& device, bp_storage* dst, uint64_t dst_offset, const void* src, uint64_t size) {
  if (size == 0) return;
  check_usable(device);
  const bp_backend_def& def = device.backend->def;
  if (device.host_memory()) {
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
  if (device.host_memory()) {
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
  StorageUse write;
  {
    std::lock_guard guard(device.lock);
    write = src->last_write;
  }
  Stream& stream = write.stream ? *write.stream : current_stream(device);
  wait_for(stream, write.ticket);
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
      trim_freed(*device, true);
      for (auto& stream : device->streams) {
        CallGuard call;
        backend.def.stream_destroy(backend.def.context, device->ordinal, stream->handle);
      }
      device->streams.clear();
    }
  }
}

}  // namespace backplane::core
