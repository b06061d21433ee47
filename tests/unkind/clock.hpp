// Which positions of all queues come before a position of one, whatever the schedule: a vector clock, kept sorted by
// queue.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace unkind {

class Clock {
 public:
  uint64_t at(uint32_t queue) const {
    for (const auto& [of, seq] : rows_)
      if (of == queue) return seq;
    return 0;
  }
  void raise(uint32_t queue, uint64_t seq) {
    for (auto& [of, known] : rows_)
      if (of == queue) {
        known = std::max(known, seq);
        return;
      }
    rows_.emplace_back(queue, seq);
  }
  void raise(const Clock& other) {
    for (const auto& [queue, seq] : other.rows_) raise(queue, seq);
  }

 private:
  std::vector<std::pair<uint32_t, uint64_t>> rows_;
};

}  // namespace unkind
