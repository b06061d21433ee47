// What compiled plans are kept, by key.
#pragma once

#include <cstddef>
#include <iterator>
#include <map>
#include <random>
#include <utility>

namespace backplane::cpu {

template <class Key, class Plan, size_t kKept>
class PlanCache {
 public:
  // The key's plan, from make() where it is not kept. Lives until the next call.
  template <class Make>
  const Plan& find(const Key& key, Make make) {
    const auto found = plans_.find(key);
    if (found != plans_.end()) return found->second;
    Plan plan = make();
    // Any, for the least recently used would be the next that is wanted where keys come round and round.
    if (plans_.size() >= kKept) plans_.erase(std::next(plans_.begin(), static_cast<std::ptrdiff_t>(draw_() % kKept)));
    return plans_.emplace(key, std::move(plan)).first->second;
  }

 private:
  std::map<Key, Plan> plans_;
  std::minstd_rand draw_;
};

}  // namespace backplane::cpu
