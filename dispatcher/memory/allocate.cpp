#include "memory/allocate.hpp"

#include <utility>

#include "backplane/error.hpp"
#include "memory/devices/stream.hpp"
#include "memory/fork.hpp"
#include "memory/memory.hpp"
#include "memory/process/epoch.hpp"
#include "memory/process/foreign_call.hpp"

namespace backplane::core {
namespace {

// NULL without a failure would be read as an address.
bp_status allocate_from_backend(Device& device, uint64_t size, void** data) {
  const bp_backend_def& def = device.backend->def;
  CallGuard guard;
  const bp_status status = def.allocate(def.context, device.ordinal, size, data);
  BP_CHECK(status != BP_OK || *data, DEVICE, "device ", name_of(device), ": allocate of ", size,
           " bytes gave BP_OK and no memory (NULL); a backend returns BP_ERROR_MEMORY where it has none");
  return status;
}

void give_back(Device& device, const std::vector<BlockPool::Segment>& segments) noexcept {
  CallGuard guard;
  for (const BlockPool::Segment& segment : segments) deallocate_in_backend(device, segment.data, segment.size);
}

void* take_from_pool(Device& device, uint64_t size, Stream& stream, StorageUses& pending) {
  std::lock_guard guard(device.lock);
  take_freed(device);
  void* data = device.pool->take(size, &stream);
  if (!data) {
    for (auto& each : device.streams) refresh_completed(*each);
    data = device.pool->take(size, &stream);
  }
  if (data)
    for (const StorageUse& use : device.pool->uses(data)) pending.note_read(use);
  return data;
}

bp_status grow_pool(Device& device, uint64_t size, Stream& stream, bool at_least, void** data) {
  uint64_t segment;
  {
    std::lock_guard guard(device.lock);
    const uint64_t largest = device.properties.largest_block;
    segment = device.pool->segment_size(size, at_least);
    if (largest && segment > largest) segment = device.pool->segment_size(size, true);
    if (segment > device.memory_limit || device.pool->reserved() > device.memory_limit - segment) {
      keep_error("the limit would be exceeded");
      return BP_ERROR_MEMORY;
    }
  }
  const bp_status status = allocate_from_backend(device, segment, data);
  if (status != BP_OK) return status;
  std::lock_guard guard(device.lock);
  *data = device.pool->adopt({*data, segment}, size, &stream);
  return BP_OK;
}

bp_status take_from_backends_pool(Device& device, uint64_t size, Stream& stream, StorageUses& pending, void** data) {
  std::lock_guard lock(device.lock);
  take_freed(device);
  await_turn(stream);
  // The backend may give what work of this stream still uses. A capture holds the memory of all that it records.
  if (stream.issued != 0 && !stream.capture) pending.note_read({&stream, stream.issued});
  CallGuard guard;
  const bp_status status =
      device.backend->extensions.memory->take(device.backend->def.context, device.ordinal, stream.handle, size, data);
  BP_CHECK(status != BP_OK || *data, DEVICE, "device ", name_of(device), ": take of ", size,
           " bytes gave BP_OK and no memory (NULL); a backend returns BP_ERROR_MEMORY where it has none");
  return status;
}

// Under the device's lock.
void give_to_backends_pool(Device& device, void* data, uint64_t size, const StorageUses& uses) {
  std::vector<bp_stream*> streams;
  std::vector<uint64_t> tickets;
  uses.each([&](const StorageUse& use) {
    flush(*use.stream);
    streams.push_back(use.stream->handle);
    tickets.push_back(use.ticket);
  });
  CallGuard guard;
  device.backend->extensions.memory->give(device.backend->def.context, device.ordinal, data, size, streams.data(),
                                          tickets.data(), static_cast<int32_t>(streams.size()));
}

bp_status try_allocate(Device& device, uint64_t size, bool at_least, StorageUses& pending, void** data) {
  if (device.synchronous()) return allocate_from_backend(device, size, data);
  Stream& stream = current_stream(device);
  if (!device.pool) return take_from_backends_pool(device, size, stream, pending, data);
  *data = take_from_pool(device, size, stream, pending);
  return *data ? BP_OK : grow_pool(device, size, stream, at_least, data);
}

[[gnu::cold, gnu::noinline]] void* allocate_without_caches(Device& device, uint64_t size, StorageUses& pending,
                                                           bp_status status) {
  void* data = nullptr;
  if (status == BP_ERROR_MEMORY && empty_caches(device)) status = try_allocate(device, size, true, pending, &data);
  if (status == BP_OK) return data;
  if (status != BP_ERROR_MEMORY) throw_device_error(device, status, "allocate");
  const std::string cause = take_error();
  detail::fail(BP_ERROR_MEMORY, "device ", name_of(device), ": found no memory for ", bytes_text(size),
               usage_text(device), ", after cached blocks were released. Fix: free tensors, or work in smaller pieces",
               has_memory_limit(device) ? ", or raise the limit with set_memory_limit" : "",
               cause.empty() ? "" : " (" + cause + ")");
}

}  // namespace

bool keeps_own_pool(const Device& device) {
  const bp_extension_memory* memory = device.backend->extensions.memory;
  return !device.synchronous() && memory && memory->take;
}

std::unique_ptr<BlockPool> make_pool(const Device& device) {
  if (device.synchronous() || keeps_own_pool(device)) return nullptr;
  constexpr uint32_t kInParts = BP_BACKEND_ADDRESSABLE | BP_BACKEND_SUBALLOCATABLE;
  return std::make_unique<BlockPool>((device.flags & kInParts) == kInParts, device.properties.alignment, has_ended);
}

uint64_t block_size(const Device& device, uint64_t size) {
  const uint64_t granule = std::max<uint64_t>(device.properties.copy_granule, 1);
  return (std::max<uint64_t>(size, 1) + granule - 1) & ~(granule - 1);
}

[[noreturn, gnu::cold, gnu::noinline]] static void fail_block(const Device& device, uint64_t size) {
  detail::fail(BP_ERROR_MEMORY, "device ", name_of(device), ": found a request for ", bytes_text(size),
               " in one block, expected at most ", bytes_text(device.properties.largest_block),
               ", the largest that the device has. Fix: work in smaller pieces");
}

void* allocate(Device& device, uint64_t size, StorageUses& pending) {
  size = block_size(device, size);
  if (device.properties.largest_block && size > device.properties.largest_block) fail_block(device, size);
  void* data = nullptr;
  const bp_status status = try_allocate(device, size, false, pending, &data);
  return status == BP_OK ? data : allocate_without_caches(device, size, pending, status);
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

namespace {

// Under the device's lock. False: not yet, since a call has a stream that the block's last work is on.
bool give(Device& device, void* data, uint64_t size, const StorageUses& uses) noexcept {
  if (device.pool) {
    device.pool->give(data, uses);
    return true;
  }
  bool busy = false;
  uses.each([&](const StorageUse& use) {
    busy = busy || use.stream->busy || (use.stream->open && use.ticket >= use.stream->open);
  });
  if (busy) return false;
  try {
    give_to_backends_pool(device, data, size, uses);
  } catch (const Error&) {
    // The device is lost: its memory goes with it.
  }
  return true;
}

void keep_freed(Device& device, void* data, uint64_t size, uint32_t generation, const StorageUses& uses) noexcept {
  auto* block = new FreedBlock{data, size, generation, {}, device.freed.load(std::memory_order_relaxed)};
  uses.each([&](const StorageUse& use) { block->uses.note_read(use); });
  while (!device.freed.compare_exchange_weak(block->next, block, std::memory_order_release)) {
  }
}

// Under the device's lock: what the pool holds beyond a quarter of the device's memory, which may wait for its reuse.
std::vector<BlockPool::Segment> dropped_segments(Device& device) {
  if (!device.pool) return {};
  const uint64_t keep = std::max<uint64_t>(device.properties.total_memory / 4, uint64_t{64} << 20);
  if (device.pool->reserved() - device.pool->in_use() <= keep) return {};
  return device.pool->drop_unused(keep);
}

}  // namespace

void deallocate_in_backend(Device& device, void* data, uint64_t size) noexcept {
  const bp_backend_def& def = device.backend->def;
  (void)call_foreign("deallocate", [&] { return def.deallocate(def.context, device.ordinal, data, size); });
}

void deallocate(Device& device, void* data, uint64_t size, uint32_t generation, const StorageUses& uses) noexcept {
  if (device.fork_generation != fork_generation() && !may_deallocate(device)) [[unlikely]]
    return;
  size = block_size(device, size);
  if (device.synchronous()) {
    CallGuard guard;
    deallocate_in_backend(device, data, size);
    return;
  }
  if (!device.lock.try_lock()) return keep_freed(device, data, size, generation, uses);
  take_freed(device);
  // Blocks from before a reset are gone already.
  const bool taken = generation != device.generation || give(device, data, size, uses);
  std::vector<BlockPool::Segment> dropped = dropped_segments(device);
  device.lock.unlock();
  if (!taken) keep_freed(device, data, size, generation, uses);
  give_back(device, dropped);
}

void take_freed(Device& device) noexcept {
  if (!device.freed.load(std::memory_order_relaxed)) [[likely]]
    return;
  FreedBlock* block = device.freed.exchange(nullptr, std::memory_order_acquire);
  while (block) {
    const std::unique_ptr<FreedBlock> mine(std::exchange(block, block->next));
    if (mine->generation == device.generation && !give(device, mine->data, mine->size, mine->uses))
      keep_freed(device, mine->data, mine->size, mine->generation, mine->uses);
  }
}

void empty_pool(Device& device) {
  if (!device.pool) return;
  std::vector<BlockPool::Segment> dropped;
  {
    std::lock_guard guard(device.lock);
    take_freed(device);
    dropped = device.pool->drop_unused(0);
  }
  give_back(device, dropped);
}

void fail_size(const int64_t* sizes, int32_t ndim, uint64_t item_size) {
  std::string shape;
  for (int32_t i = 0; i < ndim; ++i) shape += (i ? ", " : "") + std::to_string(sizes[i]);
  detail::fail(BP_ERROR_MEMORY, "a tensor of shape (", shape, ndim == 1 ? "," : "", ") with ", item_size,
               " bytes per element has more bytes than 63 bits can count");
}

}  // namespace backplane::core
