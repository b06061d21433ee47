#include "memory/pinned.hpp"

#include <algorithm>
#include <map>

#include "backplane/device.hpp"
#include "backplane/error.hpp"
#include "memory/devices/stream.hpp"
#include "memory/process/epoch.hpp"
#include "memory/process/foreign_call.hpp"
#include "memory/process/plugin_finder.hpp"

namespace backplane::core {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kKept = uint64_t{256} << 20;  // bytes that may wait for their reuse

struct Kept {
  StaticLock lock{LockRank::kPool};
  std::map<BackendRecord*, std::multimap<uint64_t, PinnedBlock*>> blocks;  // by size
};
Kept& kept() {
  static Kept* all = new Kept;  // storages may end as late as the process
  return *all;
}

void give_back(PinnedBlock* block) noexcept {
  const bp_backend_def& def = block->backend->def;
  {
    CallGuard guard;
    (void)call_foreign("deallocate of pinned memory", [&] {
      return block->backend->extensions.pinned->deallocate(def.context, block->data, block->size);
    });
  }
  delete block;
}

// The end of a storage.
void release_pinned(void* external) {
  auto* block = static_cast<PinnedBlock*>(external);
  PluginRecord* const owner = block->backend->owner;
  {
    std::lock_guard lock(kept().lock);
    kept().blocks[block->backend].emplace(block->size, block);
  }
  unlease(owner, LeaseKind::kPinned);
}

PinnedBlock* take_kept(BackendRecord& backend, uint64_t size) {
  std::lock_guard lock(kept().lock);
  auto& blocks = kept().blocks[&backend];
  const auto found = blocks.lower_bound(size);
  if (found == blocks.end() || found->first > 2 * size) return nullptr;
  PinnedBlock* block = found->second;
  blocks.erase(found);
  return block;
}

// The largest ones, until no more than kKept bytes stay.
void trim(BackendRecord& backend, uint64_t keep) noexcept {
  std::vector<PinnedBlock*> dropped;
  {
    std::lock_guard lock(kept().lock);
    auto& blocks = kept().blocks[&backend];
    uint64_t held = 0;
    for (const auto& [size, block] : blocks) held += size;
    while (held > keep && !blocks.empty()) {
      const auto largest = std::prev(blocks.end());
      held -= largest->first;
      dropped.push_back(largest->second);
      blocks.erase(largest);
    }
  }
  for (PinnedBlock* block : dropped) give_back(block);
}

PinnedBlock* make_block(BackendRecord& backend, uint64_t size) {
  trim(backend, kKept);
  auto block = std::make_unique<PinnedBlock>(PinnedBlock{&backend, nullptr, size});
  CallGuard guard;
  take_error();
  const bp_status status = backend.extensions.pinned->allocate(backend.def.context, size, &block->data);
  if (status != BP_OK || !block->data)
    detail::fail(status == BP_OK ? BP_ERROR_MEMORY : status, "backend ", backend.name, ": found no pinned memory for ",
                 size, " bytes: ", take_error());
  return block.release();
}

}  // namespace

bp_storage* new_pinned(BackendRecord& backend, uint64_t size) {
  BP_CHECK(backend.extensions.pinned, NOT_IMPLEMENTED, "pinned memory: backend \"", backend.name,
           "\" does not offer it (extension \"pinned\"). Fix: copy without it");
  BP_CHECK(size <= UINT64_MAX / 4, MEMORY, "pinned memory: ", size, " bytes do not fit the address space");
  const uint64_t rounded = std::max<uint64_t>((size + kPage - 1) / kPage * kPage, kPage);
  PinnedBlock* block = take_kept(backend, rounded);
  if (!block) block = make_block(backend, rounded);
  lease(backend.owner, LeaseKind::kPinned);
  return wrap_storage(host_device(), block->data, size, block, release_pinned);
}

const PinnedBlock* pinned_block(const bp_storage& storage) noexcept {
  const bool pinned = storage.owner == bp_storage::Owner::kExternal && storage.release_external == release_pinned;
  return pinned ? static_cast<const PinnedBlock*>(storage.external) : nullptr;
}

void empty_pinned(BackendRecord& backend) noexcept { trim(backend, 0); }

}  // namespace backplane::core
