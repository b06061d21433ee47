// Walks the merged loop descriptor of a call, row by row along its innermost dimension.
//
// Pure; a range of linear element numbers may start and end anywhere, so pieces of any size can run on several threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backplane/abi/host.h"

namespace backplane::cpu {

inline constexpr int kMaxRank = 64;

// Calls row(pointers, strides, n) for the elements [begin, end), n at most the innermost size, with one pointer and one
// stride per operand; stops where it returns other than NULL, and returns that.
template <int Operands, class Row>
const char* for_each_row(const bp_loop& loop, char* const* bases, int64_t begin, int64_t end, Row&& row) {
  char* pointers[Operands];
  std::copy(bases, bases + Operands, pointers);
  int64_t strides[Operands] = {};
  const int32_t rank = loop.rank;
  if (rank == 0) return row(pointers, strides, end - begin);
  const int64_t* sizes = loop.sizes;
  int64_t position[kMaxRank];
  int64_t rest = begin;
  for (int32_t d = rank - 1; d >= 0; --d) {
    position[d] = rest % sizes[d];
    rest /= sizes[d];
    for (int i = 0; i < Operands; ++i) pointers[i] += position[d] * loop.strides[i * rank + d];
  }
  for (int i = 0; i < Operands; ++i) strides[i] = loop.strides[i * rank + rank - 1];
  for (int64_t at = begin; at < end;) {
    const int64_t n = std::min(sizes[rank - 1] - position[rank - 1], end - at);
    if (const char* fault = row(pointers, strides, n)) return fault;
    at += n;
    if (at >= end) break;
    for (int i = 0; i < Operands; ++i) pointers[i] -= position[rank - 1] * strides[i];
    position[rank - 1] = 0;
    for (int32_t d = rank - 2; d >= 0; --d) {
      for (int i = 0; i < Operands; ++i) pointers[i] += loop.strides[i * rank + d];
      if (++position[d] < sizes[d]) break;
      for (int i = 0; i < Operands; ++i) pointers[i] -= sizes[d] * loop.strides[i * rank + d];
      position[d] = 0;
    }
  }
  return nullptr;
}

}  // namespace backplane::cpu
