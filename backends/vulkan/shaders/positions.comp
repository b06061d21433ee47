// Advanced indexing, first step: where the index tensors point, as element offsets in the indexed tensor.
//
// at: offsets (int32, contiguous), one index tensor. n: positions, rank of the index, size and stride of its axis, number
// of the axis, 1: the offsets are added to. dims: rows with strides 0 and of the index. kIn: of the index.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "call.glsl"
#include "fault.glsl"

void main() {
  receive();
  const int64_t size = int64_t(n[2]);
  for (uint i = gl_GlobalInvocationID.x; i < n[0]; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
    int offsets[4];
    offsets_of(i, dims, n[1], 2u, offsets);
    const uint64_t from = element(at[1], offsets[1], kIn);
    int64_t found = load_int64(from, kIn);
    if (found < -size || found >= size) {
      report(kIndexRange, found, n[4], n[2]);
      found = 0l;
    }
    if (found < 0l) found += size;
    Ref32 to = Ref32(at[0] + uint64_t(i) * 4ul);
    const int offset = int(found) * int(n[3]);
    to.v = n[5] != 0u ? to.v + uint(offset) : uint(offset);
  }
}
