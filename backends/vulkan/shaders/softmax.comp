// softmax (kFunction 0) and its logarithm (1) along lines of a contiguous tensor, without overflow.
//
// at: result, x. n: lines, length, elements between two of a line, multiplier and shift of those. kOption 0: an invocation
// per line; 1: a workgroup per line.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "class.glsl"

shared T values[256];

// Of all invocations of the workgroup, between barriers: the largest (NaN where there is one), or the sum.
T of_all(T own, bool sums) {
  const uint lane = gl_LocalInvocationID.x;
  values[lane] = own;
  for (uint half_size = 128u; half_size > 0u; half_size /= 2u) {
    barrier();
    if (lane < half_size) {
      const T x = values[lane], y = values[lane + half_size];
      values[lane] = sums ? x + y : is_nan(x) || !(below(x, y) || is_nan(y)) ? x : y;
    }
  }
  barrier();
  const T all = values[0];
  barrier();
  return all;
}

void main() {
  receive();
  const uint lines = n[0], length = n[1], inner = n[2], lane = gl_LocalInvocationID.x;
  const uint first = kOption == 0u ? gl_GlobalInvocationID.x : gl_WorkGroupID.x;
  const uint by = kOption == 0u ? gl_NumWorkGroups.x * gl_WorkGroupSize.x : gl_NumWorkGroups.x;
  const uint begin = kOption == 0u ? 0u : lane, step = kOption == 0u ? 1u : 256u;
  for (uint i = first; i < lines; i += by) {
    const uint row = divided(i, n[3], n[4]);
    const int line = int(row * length * inner + i - row * inner);
    const uint64_t x = element(at[1], line, kIn), to = element(at[0], line, kOut);
    T largest = -T(bp_inf_float32()), sum = T(0);
    for (uint k = begin; k < length; k += step) {
      const T next = LOAD(element(x, int(k * inner), kIn), kIn);
      if (!is_nan(largest) && (is_nan(next) || below(largest, next))) largest = next;
    }
    if (kOption != 0u) largest = of_all(largest, false);
    for (uint k = begin; k < length; k += step)
      sum += JOIN(bp_exp_, CLASS)(LOAD(element(x, int(k * inner), kIn), kIn) - largest);
    if (kOption != 0u) sum = of_all(sum, true);
    const T log_sum = kFunction == 1u ? JOIN(bp_log_, CLASS)(sum) : T(0);
    for (uint k = begin; k < length; k += step) {
      const T distance = LOAD(element(x, int(k * inner), kIn), kIn) - largest;
      const T value = kFunction == 1u ? distance - log_sum : JOIN(bp_exp_, CLASS)(distance) / sum;
      store(element(to, int(k * inner), kOut), kOut, value);
    }
  }
}
