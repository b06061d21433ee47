// Products by blocks of sums per subgroup, straight from memory: for devices on which shared memory is no nearer than any
// other and a barrier is dear, as software drivers are. An invocation has the sums of kAcross columns and of all rows of the
// block; of the left matrix it reads kDown rows, kLanes apart, and the others have them from it by broadcasts. kOption, bits
// 0 and 1, 2 and 3: the binary logarithms of kDown and kAcross.
#define BACKPLANE_GROUP_SHAPE
layout(local_size_x = 32) in;
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_ballot : require
#include "class.glsl"

layout(constant_id = 4) const uint kLanes = 8;  // of a subgroup
const uint kDown = 1u << (kOption & 3u), kAcross = 1u << (kOption >> 2u & 3u);
const uint kBlockRows = kDown * kLanes, kBlockColumns = kLanes * kAcross;

// Indexed by the variables of loops of at most 8 turns alone: drivers unroll those, and then keep the sums in registers.
T sums[kDown][kLanes][kAcross];

void clear_sums() {
  for (uint a = 0u; a < kDown; ++a)
    for (uint lane = 0u; lane < kLanes; ++lane)
      for (uint b = 0u; b < kAcross; ++b) sums[a][lane][b] = T(0);
}

T of_lane(T value, uint lane) {
#ifdef BACKPLANE_INTEGER
  return T(packUint2x32(subgroupBroadcast(unpackUint2x32(uint64_t(value)), lane)));
#else
  return subgroupBroadcast(value, lane);
#endif
}

void add_product(T left[kDown], T right[kAcross]) {
  for (uint a = 0u; a < kDown; ++a)
    for (uint lane = 0u; lane < kLanes; ++lane) {
      const T each = of_lane(left[a], lane);
      for (uint b = 0u; b < kAcross; ++b) sums[a][lane][b] = add(sums[a][lane][b], times(each, right[b]));
    }
}

// Subgroups take turns over the blocks.
uint first_block() { return gl_WorkGroupID.x * gl_NumSubgroups + gl_SubgroupID; }
uint all_subgroups() { return gl_NumWorkGroups.x * gl_NumSubgroups; }
