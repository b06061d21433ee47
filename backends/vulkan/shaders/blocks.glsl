// Products by blocks of kDown x kAcross sums per invocation, straight from memory: for devices on which shared memory is
// no nearer than any other and a barrier is dear, as software drivers are. kOption, bits 0 and 1, 2 and 3: the binary
// logarithms of kDown and kAcross.
#define BACKPLANE_GROUP_SHAPE
layout(local_size_x = 32) in;
#include "class.glsl"

const uint kDown = 1u << (kOption & 3u), kAcross = 1u << (kOption >> 2u & 3u);

T sums[kDown * kAcross];

// Loops of at most 8 turns: drivers unroll those, and then keep the sums in registers.
void clear_sums() {
  for (uint a = 0u; a < kDown; ++a)
    for (uint b = 0u; b < kAcross; ++b) sums[a * kAcross + b] = T(0);
}

void add_product(T left[kDown], T right[kAcross]) {
  for (uint a = 0u; a < kDown; ++a)
    for (uint b = 0u; b < kAcross; ++b) sums[a * kAcross + b] = add(sums[a * kAcross + b], times(left[a], right[b]));
}
