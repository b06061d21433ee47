#include "runtime/arena.hpp"

namespace backplane::vulkan {

Arena::~Arena() {
  if (chunk_.buffer) device_.destroy(chunk_);
  for (const auto* blocks : {&full_, &free_[0], &free_[1]})
    for (const Block& block : *blocks) device_.destroy(block);
}

Block Arena::block(uint64_t size) {
  std::vector<Block>& free = free_[size == kChunk ? 0 : 1];
  if (free.empty()) return device_.make_staging(size);
  const Block found = free.back();
  free.pop_back();
  return found;
}

Place Arena::take(uint64_t size) {
  size = (size + 15) / 16 * 16;
  BP_CHECK(size <= kLargest, INTERNAL, "vulkan: a staged piece of ", size, " bytes");
  full_.reserve(full_.size() + 1);  // so that a block always has an owner
  if (size > kChunk / 4) {
    const Block whole = block(size <= kChunk ? kChunk : kLargest);
    full_.push_back(whole);
    return {whole.buffer, 0, whole.address, whole.mapped};
  }
  if (!chunk_.buffer || chunk_.size - used_ < size) {
    const Block next = block(kChunk);
    if (chunk_.buffer) full_.push_back(chunk_);
    chunk_ = next;
    used_ = 0;
  }
  const uint64_t offset = std::exchange(used_, used_ + size);
  return {chunk_.buffer, offset, chunk_.address + offset, chunk_.mapped + offset};
}

void Arena::give_back(const std::vector<Block>& blocks) {
  for (const Block& block : blocks) {
    std::vector<Block>& free = free_[block.size == kChunk ? 0 : 1];
    if (free.size() < kKept)
      free.push_back(block);
    else
      device_.destroy(block);
  }
}

}  // namespace backplane::vulkan
