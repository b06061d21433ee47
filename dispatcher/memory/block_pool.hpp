// What an asynchronous device keeps of memory that tensors gave back, so that allocating does not wait for the device.
//
// A block belongs to the stream that it was first taken for: that stream may have it again at once, since its work is
// in order. Another stream gets it when the work that used it has ended. Best fit, in O(log n) of the blocks that are
// free. Where a device's memory may be used in parts, small blocks are cut out of larger segments, and free neighbours
// of one stream grow together again; else blocks are whole allocations.
//
// Calls no backend: memory comes by `adopt` and goes by `drop_unused`. Guarded by the device's lock.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

#include "memory/devices/storage_uses.hpp"

namespace backplane::core {

class BlockPool {
 public:
  using IsComplete = bool (*)(const StorageUse&);
  struct Segment {
    void* data;
    uint64_t size;
  };

  // `in_parts`: addresses inside of a segment are memory as well, at multiples of `alignment`.
  BlockPool(bool in_parts, uint64_t alignment, IsComplete is_complete);
  ~BlockPool();
  BlockPool(const BlockPool&) = delete;

  // nullptr if no free block is large enough.
  void* take(uint64_t size, Stream* stream);
  // How much to ask the backend for, so that `adopt` can serve a request of `size`; at the least, where memory is
  // short.
  uint64_t segment_size(uint64_t size, bool at_least) const;
  // A block for `size` out of new memory.
  void* adopt(Segment memory, uint64_t size, Stream* stream);
  // `uses`: the work after which other streams may have the block.
  void give(void* data, const StorageUses& uses);
  // What may still use a taken block.
  const std::vector<StorageUse>& uses(void* data) const { return blocks_.at(data)->uses; }
  // Segments that no block is taken of and no running work uses, in whole, until at most `keep` bytes are free.
  std::vector<Segment> drop_unused(uint64_t keep);

  uint64_t reserved() const { return reserved_; }
  uint64_t in_use() const { return in_use_; }
  uint64_t peak() const { return peak_; }
  uint64_t taken() const { return taken_; }              // how often
  uint64_t served() const { return taken_ - adopted_; }  // of these, from memory that was held
  void reset_peak() { peak_ = in_use_; }

 private:
  struct Block {
    Block(char* at, uint64_t bytes, uint64_t whole, Stream* owner)
        : data(at), size(bytes), segment(whole), home(owner) {}
    char* data;
    uint64_t size;
    uint64_t segment;  // size of the whole, for the first block of one; else 0
    Stream* home;      // nullptr: nobody's
    bool free = false;
    bool waiting = false;          // of `waiting_`: streams beside its own use it
    std::vector<StorageUse> uses;  // that may still run, of this tenant and of those before it
    Block* before = nullptr;       // neighbours in the segment
    Block* after = nullptr;
  };
  struct BySize {
    bool operator()(const Block* a, const Block* b) const {
      return a->size != b->size ? a->size < b->size : std::less<char*>()(a->data, b->data);
    }
  };
  using FreeBlocks = std::set<Block*, BySize>;

  uint64_t rounded(uint64_t size) const;
  bool fits(const Block& block, uint64_t size) const;
  Block* find(FreeBlocks& blocks, uint64_t size);
  void disown_idle();
  bool is_complete(Block& block) const;
  void settle();
  void enter(Block* block);
  void* use(Block* block, uint64_t size, Stream* stream);
  void cut(Block& block, uint64_t size);
  bool joins(const Block* left, const Block* right) const;
  void join(Block& left);

  const bool in_parts_;
  const uint64_t alignment_;
  const IsComplete is_complete_;
  std::map<Stream*, FreeBlocks> free_;
  std::vector<Block*> waiting_;
  std::unordered_map<void*, std::unique_ptr<Block>> blocks_;
  uint64_t reserved_ = 0, in_use_ = 0, peak_ = 0, taken_ = 0, adopted_ = 0;
};

}  // namespace backplane::core
