// How a depthwise convolution reads its planes: the sizes of a plane's copy between zeros, and which columns lie
// inside.
#pragma once

#include <vector>

#include "kernels/nn/conv_tail.hpp"
#include "kernels/nn/windows.hpp"

namespace backplane::cpu {

// What all planes of a call share.
struct DepthwiseLayout {
  Windows windows;
  bool one_line;
  int64_t rows, length;  // of the results, as lines
  int64_t blocks;        // of a line, a vector each
  // Of the copy: elements of a row with its zeros, elements before the plane, and of all of it.
  int64_t pitch, before, size;
  // Per element of the kernel: where the first result reads it in the copy, or in its columns of one parity.
  std::vector<int64_t> offsets;
  int64_t row_step;  // from a row of results to the next one, there
  int64_t half;      // elements of the columns of one parity; 0: they are not split
  // Per column of the kernel and block: a bit per result, whose column of the image is inside. A block of `in_place`
  // that would cross the end of the row is moved back.
  int64_t mask_bytes, mask_step;  // of a block, and from a column to the next one
  std::vector<uint8_t> masks;
  std::vector<uint8_t> plain;      // per column of the kernel: all are
  bool in_place;                   // kernels of 3 by 3, and rows of a vector or more
  int64_t plain_begin, plain_end;  // of it: blocks whose columns are all inside

  const uint8_t* mask(int64_t kx, int64_t block) const { return masks.data() + kx * mask_step + block * mask_bytes; }
};

struct DepthwisePlane {
  const DepthwiseLayout* layout;
  const float *x, *w;
  float* y;
  float* copy;               // zeros, but for the previous plane
  const float *begin, *end;  // of x
  int64_t channel;           // of the tail
  const ConvTail* tail;
};

// For strides of 1 or 2; `lanes`: of a vector.
DepthwiseLayout depthwise_layout(const Windows& windows, int64_t lanes);

}  // namespace backplane::cpu
