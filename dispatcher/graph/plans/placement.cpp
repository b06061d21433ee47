#include "graph/plans/placement.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "backplane/error.hpp"

namespace backplane::core::graph {
namespace {

// The free bytes of an arena that grows at its end.
class FreeBytes {
 public:
  uint64_t take(uint64_t size) {
    const auto fit = by_size_.lower_bound({size, 0});
    if (fit == by_size_.end()) return grow(size);
    const auto [length, begin] = *fit;
    forget(begin, length);
    if (length > size) add(begin + size, length - size);
    return begin;
  }

  void give(uint64_t begin, uint64_t size) {
    const auto after = by_begin_.lower_bound(begin);
    if (after != by_begin_.end() && after->first == begin + size) {
      const uint64_t joined = after->second;
      forget(after->first, joined);
      size += joined;
    }
    const auto next = by_begin_.lower_bound(begin);
    if (next != by_begin_.begin()) {
      const auto [left, length] = *std::prev(next);
      if (left + length == begin) {
        forget(left, length);
        begin = left;
        size += length;
      }
    }
    add(begin, size);
  }

  uint64_t size() const { return size_; }

 private:
  // Over the free bytes at the end, if there are any.
  uint64_t grow(uint64_t size) {
    uint64_t begin = size_;
    if (!by_begin_.empty()) {
      const auto [last, length] = *std::prev(by_begin_.end());
      if (last + length == size_) {
        forget(last, length);
        begin = last;
      }
    }
    size_ = begin + size;
    return begin;
  }
  void add(uint64_t begin, uint64_t size) {
    by_begin_.emplace(begin, size);
    by_size_.emplace(size, begin);
  }
  void forget(uint64_t begin, uint64_t size) {
    by_begin_.erase(begin);
    by_size_.erase({size, begin});
  }

  std::map<uint64_t, uint64_t> by_begin_;
  std::set<std::pair<uint64_t, uint64_t>> by_size_;
  uint64_t size_ = 0;
};

// Zero-size blocks take a unit, so that no two that live at once have one address.
std::vector<uint64_t> rounded_sizes(std::span<const Lifetime> blocks, uint64_t alignment, uint64_t& sum) {
  std::vector<uint64_t> sizes(blocks.size());
  for (size_t i = 0; i < blocks.size(); ++i) {
    const uint64_t size = std::max<uint64_t>(blocks[i].size, 1);
    BP_CHECK(size <= UINT64_MAX - alignment, MEMORY, "a graph's values take more bytes than 64 bits count");
    sizes[i] = (size + alignment - 1) & ~(alignment - 1);
    BP_CHECK(sizes[i] <= UINT64_MAX - sum, MEMORY, "a graph's values take more bytes than 64 bits count");
    sum += sizes[i];
  }
  return sizes;
}

}  // namespace

Placement place_blocks(std::span<const Lifetime> blocks, uint64_t alignment) {
  Placement placement;
  const std::vector<uint64_t> sizes = rounded_sizes(blocks, alignment, placement.separate);
  placement.offsets.resize(blocks.size());
  std::vector<uint32_t> starts(blocks.size()), ends(blocks.size());
  std::iota(starts.begin(), starts.end(), 0);
  ends = starts;
  // Larger ones first among those that start together: small ones fill the gaps.
  std::stable_sort(starts.begin(), starts.end(), [&](uint32_t a, uint32_t b) {
    return blocks[a].first != blocks[b].first ? blocks[a].first < blocks[b].first : sizes[a] > sizes[b];
  });
  std::stable_sort(ends.begin(), ends.end(), [&](uint32_t a, uint32_t b) { return blocks[a].last < blocks[b].last; });
  FreeBytes arena;
  uint64_t live = 0;
  size_t ended = 0;
  for (const uint32_t block : starts) {
    for (; ended < ends.size() && blocks[ends[ended]].last < blocks[block].first; ++ended) {
      arena.give(placement.offsets[ends[ended]], sizes[ends[ended]]);
      live -= sizes[ends[ended]];
    }
    placement.offsets[block] = arena.take(sizes[block]);
    live += sizes[block];
    placement.bound = std::max(placement.bound, live);
  }
  placement.size = arena.size();
  return placement;
}

}  // namespace backplane::core::graph
