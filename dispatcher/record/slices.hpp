// Python's slices: bounds that may be absent or count from the back, as a start and a count.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backplane/abi/value.h"

namespace backplane::core {

// A list of ints whose elements may be absent.
class OptionalInts {
 public:
  OptionalInts() = default;
  explicit OptionalInts(const bp_value& list) : list_(list.tag == BP_TAG_ABSENT ? nullptr : &list) {}
  // False where the element is absent.
  bool get(size_t i, int64_t& value) const {
    if (!list_) return false;
    if (list_->tag == BP_TAG_INT_LIST) {
      value = list_->u.ints[i];
      return true;
    }
    if (list_->u.values[i].tag != BP_TAG_INT) return false;
    value = list_->u.values[i].u.i;
    return true;
  }

 private:
  const bp_value* list_ = nullptr;
};

struct Slice {
  int64_t start, count;
};

// Entry i of the lists, on an axis of `size`: bounds are clamped, never refused. `step` is not 0.
inline Slice slice_of(const OptionalInts& starts, const OptionalInts& stops, size_t i, int64_t step, int64_t size) {
  const int64_t low = step > 0 ? 0 : -1;
  const int64_t high = step > 0 ? size : size - 1;
  const auto clamp = [&](int64_t bound) {
    if (bound < 0) bound += size;
    return std::clamp(bound, low, high);
  };
  int64_t start = 0, stop = 0;
  start = starts.get(i, start) ? clamp(start) : (step > 0 ? low : high);
  stop = stops.get(i, stop) ? clamp(stop) : (step > 0 ? high : low);
  // Counted in 64 unsigned bits: -step of the least integer does not exist.
  const uint64_t distance = step > 0 ? static_cast<uint64_t>(stop - start) : static_cast<uint64_t>(start - stop);
  const uint64_t pace = step > 0 ? static_cast<uint64_t>(step) : uint64_t{0} - static_cast<uint64_t>(step);
  if (step > 0 ? stop <= start : stop >= start) return {0, 0};
  return {start, static_cast<int64_t>(pace == 1 ? distance : (distance - 1) / pace + 1)};
}

}  // namespace backplane::core
