// Running sums along lines of a contiguous tensor.
//
// at: result, x. n: lines, length, elements between two of a line. kOption 0: an invocation per line; 1: a workgroup per
// line, 256 elements at a time (Hillis and Steele, "Data Parallel Algorithms", 1986).
#version 450
#extension GL_GOOGLE_include_directive : require
#include "class.glsl"

shared T sums[256];

void main() {
  receive();
  const uint lines = n[0], length = n[1], inner = n[2], lane = gl_LocalInvocationID.x;
  const uint first = kOption == 0u ? gl_GlobalInvocationID.x : gl_WorkGroupID.x;
  const uint by = kOption == 0u ? gl_NumWorkGroups.x * gl_WorkGroupSize.x : gl_NumWorkGroups.x;
  for (uint i = first; i < lines; i += by) {
    const int line = int(i / inner * length * inner + i % inner);
    const uint64_t x = element(at[1], line, kIn), to = element(at[0], line, kOut);
    T total = T(0);
    if (kOption == 0u) {
      for (uint k = 0u; k < length; ++k) {
        const T next = LOAD(element(x, int(k * inner), kIn), kIn);
        total = k == 0u ? next : add(total, next);
        store(element(to, int(k * inner), kOut), kOut, total);
      }
      continue;
    }
    for (uint begin = 0u; begin < length; begin += 256u) {
      const uint k = begin + lane;
      T sum = k < length ? LOAD(element(x, int(k * inner), kIn), kIn) : T(0);
      for (uint back = 1u; back < 256u; back *= 2u) {
        sums[lane] = sum;
        barrier();
        if (lane >= back) sum = add(sums[lane - back], sum);
        barrier();
      }
      sum = begin == 0u ? sum : add(total, sum);
      sums[lane] = sum;
      barrier();
      total = sums[255];
      barrier();
      if (k < length) store(element(to, int(k * inner), kOut), kOut, sum);
    }
  }
}
