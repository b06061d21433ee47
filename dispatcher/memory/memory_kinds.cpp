#include "memory/memory_kinds.hpp"

#include <algorithm>
#include <map>

#include "backplane/memory_kinds.hpp"
#include "memory/devices/stream.hpp"
#include "memory/process/epoch.hpp"
#include "memory/tensors/new_tensor.hpp"
#include "record/dtype_rules.hpp"

namespace backplane {

namespace core {
namespace {

struct KindBlock {
  Device* device;
  std::string kind;
  void* data;
  uint64_t size;
  bp_storage* storage;  // nullptr: it is gone
  uint32_t generation;  // of the device
  std::vector<StorageUse> uses;
};

// Of all devices, the blocks whose storages have ended; each device's list is guarded by its lock.
struct Ended {
  StaticLock lock{LockRank::kPool};  // of the map
  std::map<Device*, std::vector<std::unique_ptr<KindBlock>>> blocks;
};
Ended& ended() {
  static Ended* all = new Ended;  // storages may end as late as the process
  return *all;
}
std::vector<std::unique_ptr<KindBlock>>& ended_of(Device& device) {
  std::lock_guard lock(ended().lock);
  return ended().blocks[&device];
}

void give_back(const KindBlock& block) noexcept {
  Device& device = *block.device;
  CallGuard guard;
  device.backend->extensions.memory->deallocate(device.backend->def.context, device.ordinal, block.kind.c_str(),
                                                block.data, block.size);
}

void release_block(void* external) {
  std::unique_ptr<KindBlock> block(static_cast<KindBlock*>(external));
  Device& device = *block->device;
  std::lock_guard lock(device.lock);
  block->storage->uses.each([&](const StorageUse& use) { block->uses.push_back(use); });
  block->storage = nullptr;
  ended_of(device).push_back(std::move(block));
  reclaim_kinds(device);
}

}  // namespace

void reclaim_kinds(Device& device) noexcept {
  const auto over = [&](const std::unique_ptr<KindBlock>& block) {
    if (block->generation != device.generation) return true;  // it went with the reset
    for (const StorageUse& use : block->uses)
      if (!has_ended(use)) return false;
    give_back(*block);
    return true;
  };
  std::erase_if(ended_of(device), over);
}

}  // namespace core

using namespace core;

namespace {

const bp_extension_memory& memory_of(const Device& device) {
  const bp_extension_memory* memory = device.backend->extensions.memory;
  BP_CHECK(memory, NOT_IMPLEMENTED, "memory by kind: device ", name_of(device),
           " has one kind (its backend has no extension \"memory\"). Fix: empty(shape, dtype, device)");
  return *memory;
}

void* allocate_kind(Device& device, const std::string& kind, uint64_t size, uint64_t alignment) {
  const bp_extension_memory& memory = memory_of(device);
  if (!device.synchronous()) {
    std::lock_guard lock(device.lock);
    for (auto& stream : device.streams) refresh_completed(*stream);
    reclaim_kinds(device);
  }
  void* data = nullptr;
  CallGuard guard;
  take_error();
  if (bp_status status =
          memory.allocate(device.backend->def.context, device.ordinal, kind.c_str(), size, alignment, &data))
    throw_device_error(device, status, "allocate of a kind");
  BP_CHECK(data, DEVICE, "device ", name_of(device), ": allocate of ", size, " bytes of kind \"", kind,
           "\" gave BP_OK and no memory (NULL)");
  return data;
}

}  // namespace

std::vector<std::string> memory_kinds(bp_device id) {
  Device& device = device_at(id);
  check_usable(device);
  std::vector<std::string> found;
  const bp_extension_memory* memory = device.backend->extensions.memory;
  constexpr uint32_t kMost = 256;
  for (uint32_t i = 0; memory && i < kMost; ++i) {
    const char* name = nullptr;
    CallGuard guard;
    if (bp_status status = memory->kind(device.backend->def.context, device.ordinal, i, &name))
      throw_device_error(device, status, "kind");
    if (!name) break;
    found.emplace_back(name);
  }
  return found;
}

Tensor empty_in(std::string_view kind, Shape shape, bp_dtype dtype, bp_device id, uint64_t alignment) {
  Device& device = device_at(id);
  check_usable(device);
  memory_of(device);
  const std::vector<std::string> kinds = memory_kinds(id);
  std::string known;
  for (const std::string& each : kinds) known += (known.empty() ? "" : ", ") + each;
  BP_CHECK(std::find(kinds.begin(), kinds.end(), kind) != kinds.end(), VALUE, "empty_in: argument kind: found \"", kind,
           "\", expected one of ", known);
  BP_CHECK((alignment & (alignment - 1)) == 0, VALUE, "empty_in: argument alignment: found ", alignment,
           ", expected 0 or a power of two");
  const uint64_t own = std::max<uint64_t>(device.properties.alignment, kItemSize[BP_COMPLEX128]);
  const Tensor sizes = empty(shape, dtype, id_of(host_device()));  // judges the shape
  const uint64_t size = std::max<uint64_t>(sizes.get()->nbytes, 1);
  auto block =
      std::make_unique<KindBlock>(KindBlock{&device, std::string(kind), nullptr, size, nullptr, device.generation, {}});
  block->data = allocate_kind(device, block->kind, size, std::max(alignment, own));
  bp_storage* storage = wrap_storage(device, block->data, size, block.get(), release_block);
  block.release()->storage = storage;
  return Tensor::adopt(new_tensor_over(storage, dtype, sizes.ndim(), shape.data(), nullptr, 0));
}

}  // namespace backplane
