// Products by blocks of kDown x kAcross sums per invocation, straight from memory: for devices on which shared memory is
// no nearer than any other and a barrier is dear, as software drivers are. kOption, bits 0 and 1, 2 and 3: the binary
// logarithms of kDown and kAcross; with BACKPLANE_TALL bit 6 doubles kDown.
#define BACKPLANE_GROUP_SHAPE
layout(local_size_x = 32) in;
#include "class.glsl"

#ifdef BACKPLANE_TALL
const uint kDown = 1u << (kOption & 3u) << (kOption >> 6u & 1u), kAcross = 1u << (kOption >> 2u & 3u);
#else
const uint kDown = 1u << (kOption & 3u), kAcross = 1u << (kOption >> 2u & 3u);
#endif

T sums[kDown * kAcross];

// What stands in arrays has a place of its own once the loops over it are unrolled.
void clear_sums() {
  [[unroll]] for (uint k = 0u; k < kDown * kAcross; ++k) sums[k] = T(0);
}

// Of two steps of the inner dimension, so that a sum that no register holds is loaded and stored once.
void add_products(T left[kDown], T left_next[kDown], T right[kAcross], T right_next[kAcross]) {
  [[unroll]] for (uint a = 0u; a < kDown; ++a)
    [[unroll]] for (uint b = 0u; b < kAcross; ++b) {
      const uint k = a * kAcross + b;
      sums[k] = add(add(sums[k], times(left[a], right[b])), times(left_next[a], right_next[b]));
    }
}
