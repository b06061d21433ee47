// The memory that work touches: its lifetime, and the order of what touches it.
#include <algorithm>
#include <utility>

#include "device.hpp"
#include "scheduler.hpp"

namespace unkind {
namespace {

using backplane::Error;

std::string text_of(const Block& block) {
  return "a block of " + std::to_string(block.size) + " bytes (number " + std::to_string(block.id) + ")";
}

}  // namespace

void* Scheduler::allocate(Device& device, uint64_t size) {
  Guard lock(mutex_);
  if (device.lost) throw Error(BP_ERROR_DEVICE_LOST, "unkind: the device is lost: " + *device.lost);
  const int64_t number = allocations_++;
  if (number == plan_.oom || (plan_.oom_every > 0 && (number + 1) % plan_.oom_every == 0))
    throw Error(BP_ERROR_MEMORY, "unkind: no memory for " + std::to_string(size) + " bytes, as the plan says");
  release_given(device);
  return reinterpret_cast<void*>(device.memory.allocate(size).name);
}

void* Scheduler::take(Device& device, Queue& queue, uint64_t size) {
  {
    Guard lock(mutex_);
    for (auto given = device.given.begin(); given != device.given.end(); ++given) {
      Block* block = device.memory.at(given->block);
      const bool fits = block && block->size >= size && block->size <= 2 * size;
      const bool own = std::all_of(given->uses.begin(), given->uses.end(),
                                   [&](const auto& use) { return use.first.get() == &queue; });
      if (!fits || !own || random_() % 4 == 0) continue;
      block->given = false;
      device.given.erase(given);
      return reinterpret_cast<void*>(block->name);
    }
  }
  return allocate(device, size);
}

void Scheduler::release(Device& device, void* data) {
  Guard lock(mutex_);
  uint64_t offset = 0;
  Block* block = device.memory.find(data, &offset);
  if (!block || offset != 0) findings_.fail("deallocate of an address that is not a block of the device");
  for (const Access& access : block->accesses) {
    if (known_.at(access.queue) >= access.seq) continue;
    const auto queue = queues_.find(access.queue);
    if (queue == queues_.end()) continue;
    // Work that a lost device has dropped touches nothing.
    if (device.lost && !(queue->second->running && queue->second->items.front().seq == access.seq)) continue;
    findings_.add("deallocate of " + text_of(*block) + " while " + access.what + " may use it");
    break;
  }
  device.memory.release(*block);
}

void Scheduler::give(Device& device, void* data, bp_stream* const* streams, const uint64_t* tickets, int32_t n) {
  Guard lock(mutex_);
  uint64_t offset = 0;
  Block* block = device.memory.find(data, &offset);
  if (!block || offset != 0 || block->given) findings_.fail("give of an address that is not a block of the device");
  Clock ended = known_;
  Device::Given given{block->id, {}};
  for (int32_t i = 0; i < n; ++i) {
    Queue& queue = queue_of(streams[i]);
    if (tickets[i] > queue.flushed) findings_.add("give of " + text_of(*block) + " with a ticket that was not flushed");
    if (const Queue::Position* at = queue.position(tickets[i])) ended.raise(*at->before);
    given.uses.emplace_back(queue.shared_from_this(), tickets[i]);
  }
  for (const Access& access : block->accesses)
    if (ended.at(access.queue) < access.seq && !device.lost)
      findings_.add("give of " + text_of(*block) + " does not name its use by " + access.what);
  block->given = true;
  device.given.push_back(std::move(given));
  release_given(device);
}

void Scheduler::release_given(Device& device) {
  std::erase_if(device.given, [&](const Device::Given& given) {
    for (const auto& [queue, ticket] : given.uses)
      if (queue->completed() < ticket) return false;
    if (Block* block = device.memory.at(given.block)) device.memory.release(*block);
    return true;
  });
}

MemoryUse Scheduler::memory_use(Device& device) const {
  Guard lock(mutex_);
  return {device.memory.in_use(), device.memory.peak()};
}

char* Scheduler::resolve(Device& device, const sim::Touch& touch, std::vector<Range>& ranges) {
  Guard lock(mutex_);
  if (device.lost) throw Error(BP_ERROR_DEVICE_LOST, "unkind: the device is lost: " + *device.lost);
  uint64_t offset = 0;
  Block* block = device.memory.find(touch.block, &offset);
  if (!block || block->given) findings_.fail("work names memory that the host has freed, or never had");
  offset += touch.offset;
  if (offset > block->size || touch.size > block->size - offset)
    findings_.fail("work touches bytes " + std::to_string(offset) + " to " + std::to_string(offset + touch.size) +
                   " of " + text_of(*block));
  ranges.push_back({&device, block->id, offset, offset + touch.size, touch.writes});
  return block->bytes.get() + offset;
}

// Against all that touches the same bytes and may still run.
void Scheduler::check_order(Queue& queue, const Item& item) {
  for (const Range& range : item.ranges) {
    Block* block = range.device->memory.at(range.block);
    if (!block) continue;  // of a recording, which check_alive looks at
    auto& accesses = block->accesses;
    std::erase_if(accesses, [&](const Access& access) { return known_.at(access.queue) >= access.seq; });
    for (const Access& access : accesses) {
      const bool apart = access.end <= range.begin || range.end <= access.begin || !(access.writes || range.writes);
      if (apart || queue.clock.at(access.queue) >= access.seq) continue;
      findings_.fail(item.what + (range.writes ? " writes " : " reads ") + text_of(*block) + " that " + access.what +
                     (access.writes ? " writes" : " reads") + "; nothing orders the two");
    }
    std::erase_if(accesses, [&](const Access& access) {
      return queue.clock.at(access.queue) >= access.seq && range.begin <= access.begin && access.end <= range.end &&
             (range.writes || (!access.writes && access.queue == queue.id));
    });
    accesses.push_back({queue.id, item.seq, range.begin, range.end, range.writes, item.what});
  }
}

void Scheduler::check_alive(const Item& item) {
  for (const Range& range : item.ranges) {
    if (range.device->lost) throw Error(BP_ERROR_DATA, "unkind: the peer whose memory it uses is lost");
    if (!range.device->memory.at(range.block)) {
      findings_.add(item.what + " runs after the host has freed its memory");
      throw Error(BP_ERROR_DATA, "unkind: work ran after its memory was freed");
    }
  }
}

}  // namespace unkind
