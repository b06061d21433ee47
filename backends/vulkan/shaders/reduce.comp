// Reductions of one class of dtypes: sum, prod, max, min, any, all.
//
// at: result, x. n: results, elements of each, rank of the results, rank of what is reduced, slices. A result may be
// made in slices, which are then the last axis of a contiguous result. dims: rows of (size, stride of the result, stride
// of x) of the results, then rows of (size, stride of x). kOption 0: an invocation per slice; 1: a workgroup per slice.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "class.glsl"

const uint kSum = 0, kProd = 1, kMax = 2, kMin = 3, kAny = 4, kAll = 5;

T start() {
  switch (kFunction) {
    case kProd:
    case kAll: return one();
#if defined(BACKPLANE_INTEGER)
    case kMax: return kIn == kUint64 ? T(0) : T(0x8000000000000000ul);
    case kMin: return kIn == kUint64 ? T(0xfffffffffffffffful) : T(0x7ffffffffffffffful);
#elif !defined(BACKPLANE_COMPLEX)
    case kMax: return -T(bp_inf_float32());
    case kMin: return T(bp_inf_float32());
#endif
    default: return T(0);
  }
}

T joined(T x, T y) {
  switch (kFunction) {
    case kSum: return add(x, y);
    case kProd: return times(x, y);
    case kAny: return is_zero(x) && is_zero(y) ? T(0) : one();
    case kAll: return is_zero(x) || is_zero(y) ? T(0) : one();
#if !defined(BACKPLANE_COMPLEX)
    case kMax: return is_nan(x) || !(below(x, y) || is_nan(y)) ? x : y;
    case kMin: return is_nan(x) || !(below(y, x) || is_nan(y)) ? x : y;
#endif
  }
  return x;
}

T joined_range(uint64_t x, uint64_t rows, uint first, uint end, uint by) {
  T total = start();
  for (uint k = first; k < end; k += by) {
    int offsets[4];
    offsets_of(k, rows, n[3], 2u, offsets);
    total = joined(total, LOAD(element(x, offsets[0], kIn), kIn));
  }
  return total;
}

void store_result(uint64_t to, T value) {
  if (kOut == kBool)
    store(to, kOut, !is_zero(value));
  else
    store(to, kOut, value);
}

shared T totals[256];

void main() {
  const uint count = n[1], slices = n[4], all = n[0] * slices, length = (count + slices - 1u) / slices;
  const uint64_t reduced_rows = dims + uint64_t(n[2]) * 12ul;
  const uint first = kOption == 0u ? gl_GlobalInvocationID.x : gl_WorkGroupID.x;
  const uint by = kOption == 0u ? gl_NumWorkGroups.x * gl_WorkGroupSize.x : gl_NumWorkGroups.x;
  for (uint i = first; i < all; i += by) {
    int offsets[4];
    offsets_of(i / slices, dims, n[2], 3u, offsets);
    const uint64_t x = element(at[1], offsets[1], kIn);
    const uint64_t to = element(at[0], slices > 1u ? int(i) : offsets[0], kOut);
    const uint begin = i % slices * length, end = min(begin + length, count);
    if (kOption == 0u) {
      store_result(to, joined_range(x, reduced_rows, begin, end, 1u));
      continue;
    }
    const uint lane = gl_LocalInvocationID.x;
    totals[lane] = joined_range(x, reduced_rows, begin + lane, end, 256u);
    for (uint half_size = 128u; half_size > 0u; half_size /= 2u) {
      barrier();
      if (lane < half_size) totals[lane] = joined(totals[lane], totals[lane + half_size]);
    }
    if (lane == 0u) store_result(to, totals[0]);
    barrier();
  }
}
