// Products by blocks of kDown x kAcross sums per invocation, straight from memory: for devices on which shared memory is
// no nearer than any other and a barrier is dear, as software drivers are. A subgroup's invocations have the same rows, so
// each loads a part of what the left matrix has there and all hear of it; their columns follow each other.
//
// kOption, bits 0 to 2, 3 and 4: the binary logarithms of kDown and kAcross. Two steps of the inner dimension are made at
// a time.
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_ballot : require
#define BACKPLANE_GROUP_SHAPE
layout(local_size_x = 32) in;
#include "class.glsl"

const uint kDown = 1u << (kOption & 7u), kAcross = 1u << (kOption >> 3u & 3u);

// Which blocks of rows and columns a subgroup has, of which group or matrix, and of which slice.
struct Item {
  uint column, row;  // the first of this invocation
  uint outer, slice;
};
uint item_count(uint rows, uint columns, uint outer, uint slices) {
  const uint width = kAcross * gl_SubgroupSize;
  return (columns + width - 1u) / width * ((rows + kDown - 1u) / kDown) * outer * slices;
}
Item item_at(uint i, uint rows, uint columns, uint outer) {
  const uint width = kAcross * gl_SubgroupSize, across = (columns + width - 1u) / width;
  const uint down = (rows + kDown - 1u) / kDown;
  return Item(i % across * width + gl_SubgroupInvocationID * kAcross, i / across % down * kDown, i / (across * down) % outer,
              i / (across * down * outer));
}
uint first_item() { return gl_WorkGroupID.x * gl_NumSubgroups + gl_SubgroupID; }
uint items_at_once() { return gl_NumWorkGroups.x * gl_NumSubgroups; }

// A value of the subgroup's invocation `lane`.
#if defined(BACKPLANE_COMPLEX) && defined(BACKPLANE_FLOAT64)
T heard(T x, uint lane) {
  return T(packDouble2x32(subgroupBroadcast(unpackDouble2x32(x.x), lane)),
           packDouble2x32(subgroupBroadcast(unpackDouble2x32(x.y), lane)));
}
#elif defined(BACKPLANE_FLOAT64)
T heard(T x, uint lane) { return packDouble2x32(subgroupBroadcast(unpackDouble2x32(x), lane)); }
#elif defined(BACKPLANE_INTEGER)
T heard(T x, uint lane) { return packInt2x32(subgroupBroadcast(unpackInt2x32(x), lane)); }
#else
T heard(T x, uint lane) { return subgroupBroadcast(x, lane); }
#endif

T sums[kDown * kAcross];

void clear_sums() {
  [[unroll]] for (uint a = 0u; a < kDown * kAcross; ++a) sums[a] = T(0);
}

// Row a of the left matrix is held by invocation a % gl_SubgroupSize.
void add_products(T held[kDown], T held_next[kDown], T right[kAcross], T right_next[kAcross]) {
  [[unroll]] for (uint a = 0u; a < kDown; ++a) {
    const uint lane = a % gl_SubgroupSize;
    const T left = heard(held[a - lane], lane), left_next = heard(held_next[a - lane], lane);
    [[unroll]] for (uint b = 0u; b < kAcross; ++b) {
      const uint k = a * kAcross + b;
      sums[k] = add(add(sums[k], times(left, right[b])), times(left_next, right_next[b]));
    }
  }
}
