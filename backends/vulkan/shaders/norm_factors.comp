// From the moments of a channel what norm.comp applies to its elements, four numbers of the class, and the results that are
// of one element per channel.
//
// at: factors, moments or (kFunction 2) means, weight, bias (0: none). n: channels, parts of each, which are joined; 2, 3:
// eps; 4, 5: address of the variances. dims: means. Of the gradient (kFunction 1) dims and n[4] are those of the weight's and the bias's (0: none).
// kIn: of the weight and of given means, kOut: of what is made.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "moments.glsl"

const uint kForward = 0, kGradient = 1, kGiven = 2;

T eps() {
#ifdef BACKPLANE_FLOAT64
  return packDouble2x32(uvec2(n[2], n[3]));
#else
  return uintBitsToFloat(n[2]);
#endif
}

void put(uint64_t to, uint i, T value) {
  if (to != 0ul) store(element(to, int(i), kOut), kOut, value);
}

void main() {
  receive();
  const uint64_t variances = packUint2x32(uvec2(n[4], n[5]));
  for (uint i = gl_GlobalInvocationID.x; i < n[0]; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
    Moments m;
    T variance;
    if (kFunction == kGiven) {
      m.mean = LOAD(element(at[1], int(i), kIn), kIn);
      variance = LOAD(element(variances, int(i), kIn), kIn);
    } else {
      m = load_moments(at[1], i * n[1]);
      for (uint part = 1u; part < n[1]; ++part) m = joined(m, load_moments(at[1], i * n[1] + part));
      variance = m.squares / m.count;
    }
    const T r = T(1) / sqrt(variance + eps());
    T scale = r, offset = T(0), slope = T(0);
    if (at[2] != 0ul) scale *= LOAD(element(at[2], int(i), kIn), kIn);
    if (kFunction == kGradient) {
      put(dims, i, r * m.products);
      put(variances, i, m.g_mean * m.count);
      offset = -scale * m.g_mean;
      slope = -scale * r * r * m.products / m.count;
    } else {
      if (at[3] != 0ul) offset = LOAD(element(at[3], int(i), kIn), kIn);
    }
    if (kFunction == kForward) {
      put(dims, i, m.mean);
      put(variances, i, variance);
    }
    const int first = int(i) * 4;
    store(element(at[0], first, kFormat), kFormat, m.mean);
    store(element(at[0], first + 1, kFormat), kFormat, scale);
    store(element(at[0], first + 2, kFormat), kFormat, offset);
    store(element(at[0], first + 3, kFormat), kFormat, slope);
  }
}
