// What compiled plans are kept, by key. A plan takes longer to make than most calls save, so a key gets one at its
// second sight among the latest; a key that was seen once is only remembered.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <random>
#include <utility>
#include <vector>

namespace backplane::cpu {

template <class Key, class Plan, size_t kKept>
class PlanCache {
 public:
  // The key's plan, from make() where it is not kept; NULL at first sight. Lives until the next call.
  template <class Make>
  const Plan* find(const Key& key, Make make) {
    const auto found = plans_.find(key);
    if (found != plans_.end()) return &found->second;
    const auto again = std::find(seen_.begin(), seen_.end(), key);
    if (again == seen_.end()) {
      if (seen_.size() == kKept) seen_.erase(seen_.begin());
      seen_.push_back(key);
      return nullptr;
    }
    seen_.erase(again);
    Plan plan = make();
    // Any, for the least recently used would be the next that is wanted where keys come round and round.
    if (plans_.size() >= kKept) plans_.erase(std::next(plans_.begin(), static_cast<std::ptrdiff_t>(draw_() % kKept)));
    return &plans_.emplace(key, std::move(plan)).first->second;
  }

 private:
  std::map<Key, Plan> plans_;
  std::vector<Key> seen_;
  std::minstd_rand draw_;
};

}  // namespace backplane::cpu
