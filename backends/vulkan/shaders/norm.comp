// Elements of x (pieces, channels, rest) by the factors of their channel (norm_factors.comp): the distance from the mean
// times a scale, plus an offset; of the gradient (kFunction 1) the cotangent times the scale, plus the distance times a
// slope, plus an offset.
//
// at: result, x, factors, cotangent. n: count, multiplier and shift of rest, channels and theirs, rest. kOption 1: an
// invocation takes a whole row of rest, pair by pair, and the count is of rows: for devices to which it is all the same
// whether neighbours read neighbours.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "class.glsl"

const uint kFormat = JOIN(format_, CLASS);

// A pair of neighbours of one channel.
void apply_pair(uint i, T mean, T scale, T offset, T slope) {
  T x, x_next, g = T(0), g_next = T(0);
  load_pair(element(at[1], int(i), kIn), x, x_next);
  if (kFunction == 1u) load_pair(element(at[3], int(i), kIn), g, g_next);
  const T first = kFunction == 1u ? scale * g + (slope * (x - mean) + offset) : (x - mean) * scale + offset;
  const T second = kFunction == 1u ? scale * g_next + (slope * (x_next - mean) + offset) : (x_next - mean) * scale + offset;
  store_pair(element(at[0], int(i), kOut), first, second);
}

void main() {
  receive();
  if (kOption == 1u) {
    const uint rest = n[6];
    for (uint row = gl_GlobalInvocationID.x; row < n[0]; row += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
      const uint channel = row - divided(row, n[4], n[5]) * n[3];
      const uint64_t factors = element(at[2], int(channel * 4u), kFormat);
      T mean, scale, offset, slope;
      mean = LOAD(factors, kFormat);
      scale = LOAD(element(factors, 1, kFormat), kFormat);
      offset = LOAD(element(factors, 2, kFormat), kFormat);
      slope = LOAD(element(factors, 3, kFormat), kFormat);
      for (uint k = 0u; k < rest; k += 2u) apply_pair(row * rest + k, mean, scale, offset, slope);
    }
    return;
  }
  for (uint i = gl_GlobalInvocationID.x; i < n[0]; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
    const uint row = divided(i, n[1], n[2]);
    const uint channel = row - divided(row, n[4], n[5]) * n[3];
    const uint64_t factors = element(at[2], int(channel * 4u), kFormat);
    const T distance = LOAD(element(at[1], int(i), kIn), kIn) - LOAD(factors, kFormat);
    const T scale = LOAD(element(factors, 1, kFormat), kFormat), offset = LOAD(element(factors, 2, kFormat), kFormat);
    T value;
    if (kFunction == 1u) {
      const T slope = LOAD(element(factors, 3, kFormat), kFormat);
      value = scale * LOAD(element(at[3], int(i), kIn), kIn) + (slope * distance + offset);
    } else {
      value = distance * scale + offset;
    }
    store(element(at[0], int(i), kOut), kOut, value);
  }
}
