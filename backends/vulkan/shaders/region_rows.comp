// The shaders of regions with reductions (region.glsl): the linker writes `prepare` and `region` anew. A row is shared
// by some lanes of a subgroup, or by a workgroup; a lane has every lanes-th of its elements.
//
// All invocations of a workgroup go through the loop over rows equally often, so that its subgroups are together where
// they shuffle: one whose row is beyond the last takes the last, of which it has no element and writes nothing.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "region.glsl"

uint length;     // of a row
uint lanes;      // a power of 2
uint lane;       // of its row
uint own;        // row of the workgroup's
uint beyond;     // the end of its elements
bool is_leader;  // does it write what there is one of per row?

// What a row's length and lanes are, in one slot.
void share_to_lanes(uint64_t sizes) {
  length = uint(sizes);
  lanes = uint(sizes >> 32);
  const uint number = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
  own = number / lanes;
  lane = number - own * lanes;
}
void share_to_groups(uint64_t sizes) {
  length = uint(sizes);
  lanes = gl_WorkGroupSize.x;
  own = 0u;
  lane = gl_LocalInvocationID.x;
}
uint first_of_row() { return lane; }
uint end_of_row() { return beyond; }
uint row_step() { return lanes; }

// The address of a row's first element in what is contiguous.
uint64_t packed_row(uint64_t base, uint row, uint shift) { return base + (uint64_t(row) * uint64_t(length) << shift); }

#define ROW(dtype, type) \
  void store_row_##dtype(uint64_t a, type v) { \
    if (is_leader) store_##dtype(a, v); \
  }
ROW(bool, bool)
ROW(int8, int8_t)
ROW(int16, int16_t)
ROW(int32, int)
ROW(int64, int64_t)
ROW(uint8, uint8_t)
ROW(uint16, uint16_t)
ROW(uint32, uint)
ROW(uint64, uint64_t)
ROW(float16, float)
ROW(bfloat16, float)
ROW(float32, float)
ROW(complex64, vec2)

// Words of what is accumulated, as subgroups shuffle them.
uint words_bool(bool v) { return v ? 1u : 0u; }
bool of_words_bool(uint w) { return w != 0u; }
uint words_float32(float v) { return floatBitsToUint(v); }
float of_words_float32(uint w) { return uintBitsToFloat(w); }
uvec2 words_int64(int64_t v) { return unpackUint2x32(uint64_t(v)); }
int64_t of_words_int64(uvec2 w) { return int64_t(packUint2x32(w)); }
uvec2 words_uint64(uint64_t v) { return unpackUint2x32(v); }
uint64_t of_words_uint64(uvec2 w) { return packUint2x32(w); }
uvec2 words_complex64(vec2 v) { return floatBitsToUint(v); }
vec2 of_words_complex64(uvec2 w) { return uintBitsToFloat(w); }
uvec4 wide(uint w) { return uvec4(w, 0u, 0u, 0u); }
uvec4 wide(uvec2 w) { return uvec4(w, 0u, 0u); }
uvec4 wide(uvec4 w) { return w; }

shared uvec4 totals[64];  // of a workgroup's subgroups

// What joins two elements, and the totals of a row on each of its lanes: `lanes_`, where they are of one subgroup;
// `group_`, where they are a workgroup. The order of operands is one for all lanes, so that all have the same bits.
#define REDUCTION(name, dtype, type, words_of, start, joined) \
  type start_##name##_##dtype() { return start; } \
  type join_##name##_##dtype(type x, type y) { return joined; } \
  type within_##name##_##dtype(type x, uint width) { \
    for (uint m = width >> 1; m > 0u; m >>= 1) { \
      const type other = of_words_##dtype(subgroupShuffleXor(words_##dtype(x), m)); \
      const bool low = (gl_SubgroupInvocationID & m) == 0u; \
      x = join_##name##_##dtype(low ? x : other, low ? other : x); \
    } \
    return x; \
  } \
  type lanes_##name##_##dtype(type x) { return within_##name##_##dtype(x, lanes); } \
  type group_##name##_##dtype(type x) { \
    x = within_##name##_##dtype(x, gl_SubgroupSize); \
    if (gl_SubgroupInvocationID == 0u) totals[gl_SubgroupID] = wide(words_##dtype(x)); \
    barrier(); \
    type all = of_words_##dtype(words_of(totals[0])); \
    for (uint s = 1u; s < gl_NumSubgroups; ++s) \
      all = join_##name##_##dtype(all, of_words_##dtype(words_of(totals[s]))); \
    barrier(); \
    return all; \
  }
// A NaN is above and below all.
#define LARGER(x, y) (isnan(x) || !(x < y || isnan(y)) ? x : y)
#define SMALLER(x, y) (isnan(x) || !(y < x || isnan(y)) ? x : y)
#define ARITHMETIC(dtype, type, words_of, one, multiply) \
  REDUCTION(sum, dtype, type, words_of, type(0), x + y) \
  REDUCTION(prod, dtype, type, words_of, one, multiply(x, y))
#define FLOATING(dtype, type, words_of) \
  ARITHMETIC(dtype, type, words_of, type(1), bp_multiply_##dtype) \
  REDUCTION(max, dtype, type, words_of, -type(bp_inf_float32()), LARGER(x, y)) \
  REDUCTION(min, dtype, type, words_of, type(bp_inf_float32()), SMALLER(x, y))
#define INTEGER(dtype, type, least, most) \
  ARITHMETIC(dtype, type, uvec2, type(1), bp_multiply_##dtype) \
  REDUCTION(max, dtype, type, uvec2, type(least), max(x, y)) \
  REDUCTION(min, dtype, type, uvec2, type(most), min(x, y))

FLOATING(float32, float, uint)
INTEGER(int64, int64_t, 0x8000000000000000ul, 0x7ffffffffffffffful)
INTEGER(uint64, uint64_t, 0ul, 0xfffffffffffffffful)
ARITHMETIC(complex64, vec2, uvec2, vec2(1, 0), bp_multiply_complex64)
REDUCTION(max, bool, bool, uint, false, x || y)
REDUCTION(min, bool, bool, uint, true, x && y)

#ifdef BACKPLANE_FLOAT64
ROW(float64, double)
ROW(complex128, dvec2)
uvec2 words_float64(double v) { return unpackDouble2x32(v); }
double of_words_float64(uvec2 w) { return packDouble2x32(w); }
uvec4 words_complex128(dvec2 v) { return uvec4(unpackDouble2x32(v.x), unpackDouble2x32(v.y)); }
dvec2 of_words_complex128(uvec4 w) { return dvec2(packDouble2x32(w.xy), packDouble2x32(w.zw)); }
FLOATING(float64, double, uvec2)
ARITHMETIC(complex128, dvec2, uvec4, dvec2(1, 0), bp_multiply_complex128)
#endif

#define REDUCED(name, dtype) lanes_##name##_##dtype(group_##name##_##dtype(start_##name##_##dtype()));
#define ORDERED(dtype) REDUCED(max, dtype) REDUCED(min, dtype)
#define NUMBER(dtype) REDUCED(sum, dtype) REDUCED(prod, dtype)
#define KEPT(dtype) store_row_##dtype(a, load_##dtype(a));

void prepare() {
  share_to_lanes(0ul);
  share_to_groups(0ul);
}

void region(uint row) {
  every_function(row + first_of_row() + end_of_row() + row_step());
  const uint64_t a = packed_row(0ul, row, 0u);
  KEPT(bool) KEPT(int8) KEPT(int16) KEPT(int32) KEPT(int64) KEPT(uint8) KEPT(uint16) KEPT(uint32) KEPT(uint64)
  KEPT(float16) KEPT(bfloat16) KEPT(float32) KEPT(complex64)
  ORDERED(bool) ORDERED(float32) ORDERED(int64) ORDERED(uint64)
  NUMBER(float32) NUMBER(int64) NUMBER(uint64) NUMBER(complex64)
#ifdef BACKPLANE_FLOAT64
  KEPT(float64) KEPT(complex128)
  ORDERED(float64)
  NUMBER(float64) NUMBER(complex128)
#endif
}

void main() {
  receive();
  const uint count = push.count;
  prepare();
  const uint each = gl_WorkGroupSize.x / lanes;
  for (uint first = gl_WorkGroupID.x * each; first < count; first += gl_NumWorkGroups.x * each) {
    const uint row = min(first + own, count - 1u);
    const bool there = first + own < count;
    beyond = there ? length : 0u;
    is_leader = there && lane == 0u;
    region(row);
  }
}
