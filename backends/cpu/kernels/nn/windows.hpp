// The geometry of windows over images (n, c, h, w), shared by convolution and pooling.
#pragma once

#include <cstdint>

#include "backplane/plugin.hpp"

namespace backplane::cpu {

struct Windows {
  int64_t height, width;          // of the image
  int64_t out_height, out_width;  // windows down and across
  int64_t kernel[2], stride[2], padding[2], dilation[2];

  int64_t image() const { return height * width; }
  int64_t outputs() const { return out_height * out_width; }
  int64_t taps() const { return kernel[0] * kernel[1]; }
};

inline void read_pair(const bp_value& list, int64_t (&pair)[2]) {
  const auto values = plugin::Unpack<std::span<const int64_t>>::get(list);
  BP_CHECK(values.size() == 2, VALUE, "found a list of ", values.size(), " sizes, expected 2: for height and width");
  pair[0] = values[0];
  pair[1] = values[1];
}

// The outputs o in [begin, end) whose tap `k` lies inside the image: 0 <= o * stride + k * dilation - padding < size.
struct Inside {
  int64_t begin, end;
};
inline Inside inside(int64_t k, int64_t stride, int64_t padding, int64_t dilation, int64_t size, int64_t outputs) {
  const int64_t shift = k * dilation - padding;
  // Rounded up without adding the stride, which may be the largest number.
  const int64_t begin = shift >= 0 ? 0 : (-shift - 1) / stride + 1;
  const int64_t end = shift >= size ? 0 : (size - shift - 1) / stride + 1;
  const int64_t last = end < outputs ? end : outputs;
  return {begin < last ? begin : last, last};
}

}  // namespace backplane::cpu
