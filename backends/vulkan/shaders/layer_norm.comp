// layer_norm (kFunction 0), its gradient (1) and rms_norm (2) of contiguous lines: a pass for the means, one for the
// squared distances from them, one for the results; rms_norm takes squares alone. A line's mean is kept by its distance
// from the first element, so that one far from 0 costs no digits.
//
// at: result, x, weight, and the bias or, of the gradient, the cotangent. n: lines, length; 2, 3: eps. kOption, bit 0:
// an invocation or a workgroup per line; 1: elements are read two at a time; 2, 3: there is a weight, a bias.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "class.glsl"

const uint kLayerNorm = 0, kGradient = 1, kRootMeanSquare = 2;
const bool kByGroup = (kOption & 1u) != 0u, kWeighted = (kOption & 4u) != 0u, kBiased = (kOption & 8u) != 0u;
const uint kWidth = (kOption & 2u) != 0u ? 2u : 1u;
const uint kStep = (kByGroup ? 256u : 1u) * kWidth;
// Elements of one sum are added up by themselves, so that long lines lose no digits.
const uint kBlock = 64u * kStep;

T eps() {
#ifdef BACKPLANE_FLOAT64
  return packDouble2x32(uvec2(n[2], n[3]));
#else
  return uintBitsToFloat(n[2]);
#endif
}

shared T values[256];

// Of all invocations of the workgroup, between barriers.
T sum_of_all(T own) {
  if (!kByGroup) return own;
  const uint lane = gl_LocalInvocationID.x;
  values[lane] = own;
  for (uint half_size = 128u; half_size > 0u; half_size /= 2u) {
    barrier();
    if (lane < half_size) values[lane] += values[lane + half_size];
  }
  barrier();
  const T all = values[0];
  barrier();
  return all;
}

// kWidth elements from `k` of what begins at `first`.
T[2] elements(uint64_t first, uint k) {
  T x[2] = T[2](T(0), T(0));
  if (kWidth == 2u)
    load_pair(element(first, int(k), kIn), x[0], x[1]);
  else
    x[0] = LOAD(element(first, int(k), kIn), kIn);
  return x;
}
// Of the cotangent, by the weight.
T[2] weighted(uint64_t cotangent, uint k) {
  T g[2] = elements(cotangent, k);
  if (!kWeighted) return g;
  const T weight[2] = elements(at[2], k);
  for (uint e = 0u; e < kWidth; ++e) g[e] *= weight[e];
  return g;
}

struct Sums {
  T x, g;
};
// Means over the line. The first pass: of x less the origin and, of the gradient, of the cotangent; the second, with
// those: of the squared distances of x from its mean, and of their products with the cotangent's.
Sums means_of(uint64_t x_line, uint64_t g_line, T origin, bool second, Sums mean) {
  const uint length = n[1], begin = kByGroup ? gl_LocalInvocationID.x * kWidth : 0u;
  Sums all = Sums(T(0), T(0));
  for (uint block = begin; block < length; block += kBlock) {
    Sums part = Sums(T(0), T(0));
    for (uint k = block; k < min(block + kBlock, length); k += kStep) {
      const T x[2] = elements(x_line, k);
      T g[2] = T[2](T(0), T(0));
      if (kFunction == kGradient) g = weighted(g_line, k);
      for (uint e = 0u; e < kWidth; ++e) {
        const T dx = x[e] - origin - mean.x;
        part.x += second ? dx * dx : dx;
        part.g += second ? dx * (g[e] - mean.g) : g[e];
      }
    }
    all.x += part.x;
    all.g += part.g;
  }
  all.x = sum_of_all(all.x) / T(length);
  if (kFunction == kGradient) all.g = sum_of_all(all.g) / T(length);
  return all;
}

void main() {
  receive();
  const uint length = n[1], lane = gl_LocalInvocationID.x;
  const uint first = kByGroup ? gl_WorkGroupID.x : gl_GlobalInvocationID.x;
  const uint by = kByGroup ? gl_NumWorkGroups.x : gl_NumWorkGroups.x * gl_WorkGroupSize.x;
  for (uint i = first; i < n[0]; i += by) {
    const int line = int(i * length);
    const uint64_t x_line = element(at[1], line, kIn), g_line = element(at[3], line, kIn);
    const uint64_t to = element(at[0], line, kOut);
    Sums mean = Sums(T(0), T(0));
    T origin = T(0);
    if (kFunction != kRootMeanSquare) {
      origin = LOAD(x_line, kIn);
      mean = means_of(x_line, g_line, origin, false, mean);
    }
    const Sums squares = means_of(x_line, g_line, origin, true, mean);
    const T r = T(1) / sqrt(squares.x + eps());
    const T slope = r * r * squares.g;
    for (uint k = kByGroup ? lane * kWidth : 0u; k < length; k += kStep) {
      T x[2] = elements(x_line, k);
      if (kFunction == kGradient) {
        const T g[2] = weighted(g_line, k);
        for (uint e = 0u; e < kWidth; ++e) x[e] = r * (g[e] - mean.g - (x[e] - origin - mean.x) * slope);
      } else {
        T weight[2] = T[2](T(1), T(1)), bias[2] = T[2](T(0), T(0));
        if (kWeighted) weight = elements(at[2], k);
        if (kBiased) bias = elements(at[3], k);
        for (uint e = 0u; e < kWidth; ++e) x[e] = (x[e] - origin - mean.x) * r * weight[e] + bias[e];
      }
      if (kWidth == 2u)
        store_pair(element(to, int(k), kOut), x[0], x[1]);
      else
        store(element(to, int(k), kOut), kOut, x[0]);
    }
  }
}
