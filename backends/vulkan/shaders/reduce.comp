// Reductions of one class of dtypes: sum, prod, max, min, any, all.
//
// at: result, x. n: results, elements of each, rank of the results, rank of what is reduced, slices. A result may be
// made in slices, which are then the last axis of a contiguous result. dims: rows with strides of the result and of x of
// the results, then rows with strides of x of what is reduced. kOption, bit 0: an invocation or a workgroup per slice; bits
// 1 and 2: the rank of what is reduced, whose rows stand from n[5] as in loop.glsl, 0: in dims; bit 3: the results' rows
// are in dims; else they have strides n[14] and n[15].
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

const bool kByGroup = (kOption & 1u) != 0u;
const uint kReducedRank = kOption >> 1 & 3u;

int reduced_offset(uint i, uint64_t rows) {
  int offsets[4];
  if (kReducedRank == 0u) {
    offsets_of(i, rows, n[3], 1u, offsets);
    return offsets[0];
  }
  int offset = 0;
  for (uint d = 1u; d < kReducedRank; ++d) {
    const uint word = 4u * d + 1u, outer = quotient(i, n[word + 1u], n[word + 2u]);
    offset += int(i - outer * n[word]) * int(n[word + 3u]);
    i = outer;
  }
  return offset + int(i) * int(n[4u * kReducedRank + 1u]);
}

T joined_range(uint64_t x, uint64_t rows, uint first, uint end, uint by) {
  T total = start();
  for (uint k = first; k < end; k += by) {
    total = joined(total, LOAD(element(x, reduced_offset(k, rows), kIn), kIn));
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
  receive();
  const uint count = n[1], slices = n[4], all = n[0] * slices, length = (count + slices - 1u) / slices;
  const uint64_t reduced_rows = rows_behind(dims, n[2], 2u);
  const uint first = !kByGroup ? gl_GlobalInvocationID.x : gl_WorkGroupID.x;
  const uint by = !kByGroup ? gl_NumWorkGroups.x * gl_WorkGroupSize.x : gl_NumWorkGroups.x;
  for (uint i = first; i < all; i += by) {
    const uint result = i / slices;
    int offsets[4] = int[4](int(result * n[14]), int(result * n[15]), 0, 0);
    if ((kOption & 8u) != 0u) offsets_of(result, dims, n[2], 2u, offsets);
    const uint64_t x = element(at[1], offsets[1], kIn);
    const uint64_t to = element(at[0], slices > 1u ? int(i) : offsets[0], kOut);
    const uint begin = i % slices * length, end = min(begin + length, count);
    if (!kByGroup) {
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
