#include "memory/block_pool.hpp"

#include <algorithm>

namespace backplane::core {
namespace {

constexpr uint64_t kUnit = 512;                       // sizes are multiples of it
constexpr uint64_t kSmall = uint64_t{1} << 20;        // requests up to here share segments
constexpr uint64_t kSegment = uint64_t{2} << 20;      // of small requests; larger ones are rounded to it
constexpr uint64_t kWholeAbove = uint64_t{64} << 20;  // a block of this size is not cut for a much smaller request

uint64_t round_up(uint64_t size, uint64_t step) { return (size + step - 1) / step * step; }

}  // namespace

BlockPool::BlockPool(bool in_parts, uint64_t alignment, IsComplete is_complete)
    : in_parts_(in_parts), alignment_(std::max(alignment, kUnit)), is_complete_(is_complete) {}

BlockPool::~BlockPool() = default;

uint64_t BlockPool::rounded(uint64_t size) const {
  if (in_parts_ || size <= 8 * kUnit) return round_up(std::max<uint64_t>(size, 1), alignment_);
  // Whole allocations of a few sizes are met again more often; a sixteenth is wasted at most.
  const uint64_t step = std::max(alignment_, uint64_t{1} << (59 - __builtin_clzll(size)));
  return round_up(size, step);
}

uint64_t BlockPool::segment_size(uint64_t size, bool at_least) const {
  size = rounded(size);
  if (!in_parts_ || at_least) return size;
  return size <= kSmall ? kSegment : round_up(size, kSegment);
}

// Is the block near enough to the size, or can the rest be cut off? Small requests keep out of large segments.
bool BlockPool::fits(const Block& block, uint64_t size) const {
  if (block.size < size) return false;
  if (!in_parts_ || (block.size > kWholeAbove && size <= kSmall)) return block.size - size <= block.size / 8;
  return true;
}

bool BlockPool::is_complete(Block& block) const {
  std::erase_if(block.uses, is_complete_);
  return block.uses.empty();
}

BlockPool::Block* BlockPool::find(FreeBlocks& blocks, uint64_t size) {
  Block wanted(nullptr, size, 0, nullptr);
  const auto at = blocks.lower_bound(&wanted);
  return at != blocks.end() && fits(**at, size) ? *at : nullptr;
}

// What no work uses any more is nobody's: every stream may have it, and neighbours grow together whose they were.
void BlockPool::disown_idle() {
  std::vector<Block*> idle;
  for (auto& [home, blocks] : free_)
    if (home)
      for (Block* block : blocks)
        if (is_complete(*block)) idle.push_back(block);
  for (Block* block : idle) {
    free_[block->home].erase(block);
    block->free = false;
    block->home = nullptr;
  }
  for (Block* block : idle) enter(block);
}

// Blocks whose other streams have ended become their own stream's again.
void BlockPool::settle() {
  std::erase_if(waiting_, [&](Block* block) {
    if (!is_complete(*block)) return false;
    block->waiting = false;
    enter(block);
    return true;
  });
}

void* BlockPool::take(uint64_t size, Stream* stream) {
  size = rounded(size);
  settle();
  Block* found = find(free_[stream], size);
  if (!found) found = find(free_[nullptr], size);
  if (!found) {
    disown_idle();
    found = find(free_[nullptr], size);
  }
  if (!found) return nullptr;
  free_[found->home].erase(found);
  found->free = false;
  return use(found, size, stream);
}

void* BlockPool::adopt(Segment memory, uint64_t size, Stream* stream) {
  auto made = std::make_unique<Block>(static_cast<char*>(memory.data), memory.size, memory.size, stream);
  Block* block = made.get();
  blocks_.emplace(memory.data, std::move(made));
  reserved_ += memory.size;
  ++adopted_;
  return use(block, rounded(size), stream);
}

void* BlockPool::use(Block* block, uint64_t size, Stream* stream) {
  block->home = stream;
  if (in_parts_ && block->size - size >= kUnit) cut(*block, size);
  in_use_ += block->size;
  peak_ = std::max(peak_, in_use_);
  ++taken_;
  return block->data;
}

// The rest stays with the block's uses: on its own stream it is as old as the whole was.
void BlockPool::cut(Block& block, uint64_t size) {
  auto made = std::make_unique<Block>(block.data + size, block.size - size, 0, block.home);
  Block* rest = made.get();
  rest->uses = block.uses;
  rest->before = &block;
  rest->after = block.after;
  if (rest->after) rest->after->before = rest;
  block.after = rest;
  block.size = size;
  blocks_.emplace(rest->data, std::move(made));
  enter(rest);
}

void BlockPool::give(void* data, const StorageUses& uses) {
  Block* block = blocks_.at(data).get();
  in_use_ -= block->size;
  uses.each([&](const StorageUse& use) { note_latest(block->uses, use); });
  is_complete(*block);
  if (std::all_of(block->uses.begin(), block->uses.end(),
                  [&](const StorageUse& use) { return use.stream == block->home; }))
    return enter(block);
  block->waiting = true;
  waiting_.push_back(block);
}

bool BlockPool::joins(const Block* left, const Block* right) const {
  return left && right && left->free && right->free && left->home == right->home;
}

// With the block after it. Both are out of the free list, or the right one is in it.
void BlockPool::join(Block& left) {
  Block* right = left.after;
  left.size += right->size;
  for (const StorageUse& use : right->uses) note_latest(left.uses, use);
  left.after = right->after;
  if (left.after) left.after->before = &left;
  blocks_.erase(right->data);
}

void BlockPool::enter(Block* block) {
  FreeBlocks& blocks = free_[block->home];
  block->free = true;
  if (joins(block, block->after)) {
    blocks.erase(block->after);
    join(*block);
  }
  if (joins(block->before, block)) {
    block = block->before;
    blocks.erase(block);
    join(*block);
  }
  blocks.insert(block);
}

std::vector<BlockPool::Segment> BlockPool::drop_unused(uint64_t keep) {
  settle();
  disown_idle();
  std::vector<Segment> dropped;
  FreeBlocks& blocks = free_[nullptr];
  for (auto at = blocks.begin(); at != blocks.end() && reserved_ - in_use_ > keep;) {
    Block* block = *at;
    if (block->segment != block->size) {
      ++at;
      continue;
    }
    dropped.push_back({block->data, block->size});
    reserved_ -= block->size;
    at = blocks.erase(at);
    blocks_.erase(block->data);
  }
  return dropped;
}

}  // namespace backplane::core
