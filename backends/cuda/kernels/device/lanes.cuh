// What other lanes of a warp have, and totals over lanes. All lanes of a warp call.
#pragma once

#include "kernels/device/element.cuh"

namespace backplane::cuda {

// x moves between lanes as words of 32 bits, each by `move`.
template <class C, class F>
__device__ C moved_by_words(C x, F move) {
  if constexpr (sizeof(C) < 4) {
    return static_cast<C>(static_cast<int>(move(static_cast<uint32_t>(static_cast<int>(x)))));
  } else {
    uint32_t words[sizeof(C) / 4];
    memcpy(words, &x, sizeof(C));
    for (uint32_t& word : words) word = move(word);
    memcpy(&x, words, sizeof(C));
    return x;
  }
}
constexpr uint32_t kAllLanes = 0xffffffffu;
template <class C>
__device__ C from_lane_above(C x, uint32_t lanes) {
  return moved_by_words(x, [=](uint32_t word) { return __shfl_down_sync(kAllLanes, word, lanes); });
}
template <class C>
__device__ C from_lane_below(C x, uint32_t lanes) {
  return moved_by_words(x, [=](uint32_t word) { return __shfl_up_sync(kAllLanes, word, lanes); });
}
template <class C>
__device__ C from_lane_across(C x, uint32_t mask) {  // of lane ^ mask
  return moved_by_words(x, [=](uint32_t word) { return __shfl_xor_sync(kAllLanes, word, mask); });
}
template <class C>
__device__ C from_lane(C x, uint32_t lane) {
  return moved_by_words(x, [=](uint32_t word) { return __shfl_sync(kAllLanes, word, lane); });
}

// The total of each group of so many lanes, a power of two, in all of them.
template <class Op, class C>
__device__ C join_lanes(C total, uint32_t lanes = kWarp) {
  for (uint32_t mask = lanes / 2; mask > 0; mask /= 2) total = Op::join(total, from_lane_across(total, mask));
  return total;
}

}  // namespace backplane::cuda
