// Positions of the first largest or smallest element along lines, the first NaN where there is one.
//
// at: result (int64), x. n: lines, length, elements between two of a line. Lines are numbered as the result's elements.
// kFunction 0: largest; 1: smallest. kOption 0: an invocation per line; 1: a workgroup per line.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "class.glsl"

shared T values[256];
shared uint places[256];

// Is y, at a later place, to be taken instead of x?
bool replaces(T y, T x) {
  if (is_nan(x)) return false;
  return is_nan(y) || (kFunction == 0u ? below(x, y) : below(y, x));
}

void join(uint to, uint from) {
  const bool later = places[from] > places[to];
  const bool taken = later ? replaces(values[from], values[to]) : !replaces(values[to], values[from]);
  if (taken) {
    values[to] = values[from];
    places[to] = places[from];
  }
}

void main() {
  receive();
  const uint lines = n[0], length = n[1], inner = n[2], lane = gl_LocalInvocationID.x;
  const uint first = kOption == 0u ? gl_GlobalInvocationID.x : gl_WorkGroupID.x;
  const uint by = kOption == 0u ? gl_NumWorkGroups.x * gl_WorkGroupSize.x : gl_NumWorkGroups.x;
  for (uint i = first; i < lines; i += by) {
    const uint64_t x = element(at[1], int(i / inner * length * inner + i % inner), kIn);
    const uint begin = kOption == 0u ? 0u : min(lane, length - 1u), step = kOption == 0u ? 1u : 256u;
    uint place = begin;
    T best = LOAD(element(x, int(begin * inner), kIn), kIn);
    for (uint k = begin + step; k < length; k += step) {
      const T next = LOAD(element(x, int(k * inner), kIn), kIn);
      if (replaces(next, best)) {
        best = next;
        place = k;
      }
    }
    if (kOption != 0u) {
      values[lane] = best;
      places[lane] = place;
      for (uint half_size = 128u; half_size > 0u; half_size /= 2u) {
        barrier();
        if (lane < half_size) join(lane, lane + half_size);
      }
      barrier();
      place = places[0];
      barrier();
    }
    if (kOption == 0u || lane == 0u) store(element(at[0], int(i), kInt64), kInt64, int64_t(place));
  }
}
