// Keys of elements: unsigned words whose order is that of the elements.
#pragma once

#include "kernels/device/element.cuh"

namespace backplane::cuda {

constexpr uint32_t kAllLanes = 0xffffffff;

__device__ inline uint32_t lane() { return threadIdx.x % kWarp; }

// NaN is the largest, and all NaNs are equal, as are the zeros of both signs.
template <class U>
__device__ U key_of(U bits, const KeyMaking& making, bool descending) {
  constexpr U kSign = static_cast<U>(U{1} << (8 * sizeof(U) - 1));
  U key = bits;
  if (making.kind == KeyKind::kBool) key = bits != 0;
  if (making.kind == KeyKind::kSigned) key = bits ^ kSign;
  if (making.kind == KeyKind::kFloat) {
    const U size = bits & static_cast<U>(~kSign);
    if (size > making.infinity)
      key = static_cast<U>(~U{0});
    else
      key = size != 0 && (bits & kSign) != 0 ? static_cast<U>(~bits) : static_cast<U>(size | kSign);
  }
  return descending ? static_cast<U>(~key) : key;
}

template <class U>
__device__ void make_keys(const Sorting& call, const KeyMaking& making) {
  for (uint32_t l = blockIdx.y; l < call.lines.count; l += gridDim.y) {
    const char* line = call.x + place(call.lines, l).x;
    U* keys = reinterpret_cast<U*>(making.keys) + uint64_t{l} * call.length;
    const auto made = [&](uint32_t i) {
      return key_of(*reinterpret_cast<const U*>(line + i * call.x_step), making, call.descending != 0);
    };
    const U some = made(0);
    uint64_t varying = 0;
    for (uint32_t i = first_index(); i < call.length; i += index_step()) {
      keys[i] = made(i);
      varying |= keys[i] ^ some;
    }
    for (uint32_t step = kWarp / 2; step > 0; step /= 2) varying |= __shfl_xor_sync(kAllLanes, varying, step);
    // Seldom more than once: what is there may be old, and then only costs an atomic operation.
    if (lane() == 0 && (varying & ~making.varying[l]) != 0)
      atomicOr(reinterpret_cast<unsigned long long*>(making.varying + l), varying);
  }
}

}  // namespace backplane::cuda
