// A tensor's elements in row-major order as bytes, other than 0 where the element is, and how many of those are. Pure.
#pragma once

#include <algorithm>
#include <cstdint>

#include "loops/cast_row.hpp"
#include "loops/row_major.hpp"

namespace backplane::cpu {

inline int64_t count_true(const uint8_t* marks, int64_t n) {
  int64_t hits = 0;
  for (int64_t first = 0; first < n; first += 255) {  // as many as a byte can count
    const int64_t last = std::min(first + 255, n);
    uint8_t some = 0;
    for (int64_t i = first; i < last; ++i) some = static_cast<uint8_t>(some + (marks[i] != 0));
    hits += some;
  }
  return hits;
}

class Marks {
 public:
  static constexpr int64_t kBlock = 512;  // elements that are read at once

  explicit Marks(const bp_tensor* x)
      : elements_(x), dtype_(x->dtype), bytes_(dtype_ == BP_BOOL ? elements_.neighbours() : nullptr) {}

  int64_t count() const { return elements_.count(); }

  // Of n elements from `first` on, at most kBlock; in `room`, where they do not lie in memory as they are.
  const uint8_t* read(int64_t first, int64_t n, uint8_t* room) const {
    if (bytes_ != nullptr) return reinterpret_cast<const uint8_t*>(bytes_) + first;
    uint8_t* to = room;
    elements_.for_each(first, n, [&](const char* row, int64_t stride, int64_t length) {
      cast_row(dtype_, row, stride, BP_BOOL, reinterpret_cast<char*>(to), 1, length);
      to += length;
    });
    return room;
  }

 private:
  RowMajor elements_;
  bp_dtype dtype_;
  const char* bytes_;
};

}  // namespace backplane::cpu
