// How many windows an axis has, and counts that kernels hold in 31 bits.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

namespace backplane::cuda {

// The part of a padded axis behind its first window.
inline int64_t room_of(int64_t size, int64_t kernel, int64_t padding, int64_t dilation) {
  return size + 2 * padding - dilation * (kernel - 1) - 1;
}

// The number of windows along an axis; empty if it does not fit a kernel, or no window fits.
inline std::optional<int64_t> windows_along(int64_t size, int64_t kernel, int64_t stride, int64_t padding,
                                            int64_t dilation) {
  if (std::min({size, kernel, stride, dilation}) < 1 || padding < 0) return std::nullopt;
  if (std::max({size, kernel, stride, padding, dilation}) > INT32_MAX / 4) return std::nullopt;
  const int64_t room = room_of(size, kernel, padding, dilation);
  return room < 0 ? std::nullopt : std::optional(room / stride + 1);
}

// Products of sizes.
class Counted {
 public:
  Counted& times(int64_t size) {
    fits_ = fits_ && size >= 0 && size <= INT32_MAX && (count_ *= size) <= INT32_MAX;
    return *this;
  }
  bool fits() const { return fits_; }

 private:
  int64_t count_ = 1;
  bool fits_ = true;
};

}  // namespace backplane::cuda
