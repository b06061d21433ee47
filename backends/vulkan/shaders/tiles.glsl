// Products of tiles: a workgroup passes both operands through shared memory, kDepth along the inner dimension at a time;
// an invocation keeps kDown x kAcross sums, whose rows and columns are 16 apart. kOption, bits 0 and 1, 2 and 3: the
// binary logarithms of kDown and kAcross.
#define BACKPLANE_GROUP_SHAPE
layout(local_size_x = 16, local_size_y = 16) in;
#include "class.glsl"

const uint kDepth = 16;
const uint kDown = 1u << (kOption & 3u), kAcross = 1u << (kOption >> 2u & 3u);
const uint kTileRows = 16u * kDown, kTileColumns = 16u * kAcross;

shared T left_tile[kDepth * kTileRows];
shared T right_tile[kDepth * kTileColumns];
T sums[kDown * kAcross];

void clear_sums() {
  for (uint i = 0u; i < kDown * kAcross; ++i) sums[i] = T(0);
}

// Between two barriers.
void add_tiles() {
  for (uint k = 0u; k < kDepth; ++k) {
    T left[kDown], right[kAcross];
    for (uint a = 0u; a < kDown; ++a) left[a] = left_tile[k * kTileRows + a * 16u + gl_LocalInvocationID.y];
    for (uint b = 0u; b < kAcross; ++b) right[b] = right_tile[k * kTileColumns + b * 16u + gl_LocalInvocationID.x];
    for (uint a = 0u; a < kDown; ++a)
      for (uint b = 0u; b < kAcross; ++b) sums[a * kAcross + b] = add(sums[a * kAcross + b], times(left[a], right[b]));
  }
}
