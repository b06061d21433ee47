// Decides which commands must wait: the reads and writes since the last barrier, by address.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace backplane::vulkan {

struct Range {
  uint64_t begin = 0, end = 0;  // addresses
};

class Hazards {
 public:
  // Notes a command; true: a barrier must stand before it.
  bool note(std::span<const Range> writes, std::span<const Range> reads) {
    const bool wait = unknown_ || written_.size() + read_.size() > kMost || overlaps(written_, reads) ||
                      overlaps(written_, writes) || overlaps(read_, writes);
    if (wait) clear();
    written_.insert(written_.end(), writes.begin(), writes.end());
    read_.insert(read_.end(), reads.begin(), reads.end());
    return wait;
  }
  // A command of other code: its accesses are not known.
  void note_unknown() { unknown_ = true; }

 private:
  static constexpr size_t kMost = 64;  // comparing more costs more than a barrier

  static bool overlaps(const std::vector<Range>& earlier, std::span<const Range> later) {
    return std::any_of(later.begin(), later.end(), [&](const Range& a) {
      return std::any_of(earlier.begin(), earlier.end(),
                         [&](const Range& b) { return a.begin < b.end && b.begin < a.end; });
    });
  }
  void clear() {
    written_.clear();
    read_.clear();
    unknown_ = false;
  }

  std::vector<Range> written_, read_;
  bool unknown_ = false;
};

}  // namespace backplane::vulkan
