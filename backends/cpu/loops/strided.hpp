// Walks one strided tensor row by row, in row-major order of its elements. Pure.
#pragma once

#include <cstdint>

#include "loops/elementwise.hpp"
#include "loops/loop.hpp"

namespace backplane::cpu {

// Calls row(pointer, stride in bytes, n) along the last axis; a tensor without axes is one element.
template <class Row>
void for_each_strided_row(const bp_tensor& tensor, Row&& row) {
  const int64_t item = plugin::kItemSize[tensor.dtype];
  const int32_t rank = tensor.dl.ndim;
  if (tensor.nbytes == 0) return;
  char* pointer = data_of(&tensor);
  if (rank == 0) return row(pointer, item, int64_t{1});
  const int64_t* shape = tensor.dl.shape;
  const int64_t* strides = tensor.dl.strides;
  int64_t position[kMaxRank] = {};
  for (;;) {
    row(pointer, strides[rank - 1] * item, shape[rank - 1]);
    int32_t d = rank - 2;
    for (; d >= 0; --d) {
      pointer += strides[d] * item;
      if (++position[d] < shape[d]) break;
      pointer -= shape[d] * strides[d] * item;
      position[d] = 0;
    }
    if (d < 0) return;
  }
}

}  // namespace backplane::cpu
