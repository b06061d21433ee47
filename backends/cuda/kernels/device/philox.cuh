// Philox 4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011): word i of a
// sequence is word i % 4 of the block at counter + i / 4. A 64-bit word is two of them, the low one first.
#pragma once

#include "kernels/device/element.cuh"
#include "kernels/random.hpp"

namespace backplane::cuda {

__device__ inline void philox_block(uint32_t (&x)[4], uint64_t key, uint64_t count) {
  uint32_t low = static_cast<uint32_t>(key), high = static_cast<uint32_t>(key >> 32);
  x[0] = static_cast<uint32_t>(count), x[1] = static_cast<uint32_t>(count >> 32), x[2] = x[3] = 0;
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const uint32_t first_high = __umulhi(0xD2511F53u, x[0]), first_low = 0xD2511F53u * x[0];
    const uint32_t second_high = __umulhi(0xCD9E8D57u, x[2]), second_low = 0xCD9E8D57u * x[2];
    x[0] = second_high ^ x[1] ^ low, x[1] = second_low;
    x[2] = first_high ^ x[3] ^ high, x[3] = first_low;
    low += 0x9E3779B9u;
    high += 0xBB67AE85u;
  }
}

// Words first..first + 3. All threads have the same first % 4.
__device__ inline void philox_words(uint32_t (&x)[4], const Draw& draw, uint64_t first) {
  const uint64_t count = draw.counter + first / 4;
  philox_block(x, draw.key, count);
  const uint32_t skipped = first % 4;
  if (skipped == 0) return;
  uint32_t next[4];
  philox_block(next, draw.key, count + 1);
  // By single steps: a register cannot be chosen by a number.
  for (uint32_t k = 0; k < skipped; ++k) {
    x[0] = x[1], x[1] = x[2], x[2] = x[3], x[3] = next[0];
    next[0] = next[1], next[1] = next[2];
  }
}

__device__ inline uint64_t wide_word(const uint32_t (&x)[4], int k) { return uint64_t{x[2 * k + 1]} << 32 | x[2 * k]; }

// make(first, elements) for each kCount elements from `first` on, which are then written together.
template <class T, int kCount, class F>
__device__ void draw_groups(const Draw& draw, F make) {
  using Together = Pack<T, kCount>;
  T* out = reinterpret_cast<T*>(draw.out);
  const bool aligned = reinterpret_cast<uintptr_t>(out) % alignof(Together) == 0;
  const uint64_t groups = (draw.count + kCount - 1) / kCount;
  for (uint64_t group = first_index(); group < groups; group += index_step()) {
    const uint64_t first = group * kCount;
    Together made;
    make(first, made.at);
    if (aligned && first + kCount <= draw.count) {
      reinterpret_cast<Together*>(out)[group] = made;
    } else {
#pragma unroll
      for (int k = 0; k < kCount; ++k)
        if (first + k < draw.count) out[first + k] = made.at[k];
    }
  }
}

}  // namespace backplane::cuda
