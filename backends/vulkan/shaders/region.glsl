// What the shaders of fused regions are made of: every scalar function, loads and stores, as functions that the linker
// (fuse/) takes. `every_function` calls them all, so that none is left out; it is in no linked shader. Not optimised
// when we build: functions stay functions.
//
// at: slots (fuse/region_writer.hpp): addresses of what is loaded, of what is stored, then bits of numbers. table: all
// slots where the push has no room for them, then rows (Layout in fuse/layout.hpp).
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_16bit_storage : require
#ifndef BACKPLANE_FLOAT64
#define BP_SCALAR_WITHOUT_FLOAT64
#endif
#include "backplane/scalar.glsl"

layout(local_size_x = 256) in;

layout(push_constant, std430) uniform Push {
  uint64_t table;
  uint count;
  uint skipped;  // bytes of the table before its rows
  uint64_t at[14];
} push;

layout(buffer_reference, std430, buffer_reference_align = 1) buffer Ref8 { uint8_t v; };
layout(buffer_reference, std430, buffer_reference_align = 2) buffer Ref16 { uint16_t v; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Ref32 { uint v; };
layout(buffer_reference, std430, buffer_reference_align = 8) buffer Ref64 { uint64_t v; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Ints { int v[]; };

// Read once, at the start of main: what stands in a loop lavapipe 22.3 reads lane by lane.
uint64_t table;
uint64_t at[14];
uint64_t rows;
int row_words[96];

void read_rows(uint words) {
  for (uint k = 0u; k < words; ++k) row_words[k] = Ints(rows).v[k];
}

// A slot.
uint64_t pushed(uint k) { return at[k]; }
uint64_t listed(uint k) { return Ref64(table + uint64_t(k) * 8ul).v; }

// Addresses of an operand's elements. `width`: words of a row; `column`: the operand's stride in it; `first`: the word
// at which rows begin.
uint64_t linear(uint64_t base, uint i, uint shift) { return base + (uint64_t(i) << shift); }
uint quotient(uint i, uint multiplier, uint shift) {
  uint high, low;
  umulExtended(i, multiplier, high, low);
  return high >> shift;
}
uint64_t strided(uint64_t base, uint i, uint shift, uint rank, uint width, uint column, uint first) {
  int offset = 0;
  for (uint d = 0u; d + 1u < rank; ++d) {
    const uint row = first + d * width, outer = quotient(i, uint(row_words[row + 1u]), uint(row_words[row + 2u]));
    offset += int(i - outer * uint(row_words[row])) * row_words[row + column];
    i = outer;
  }
  offset += int(i) * row_words[first + (rank - 1u) * width + column];
  return base + (int64_t(offset) << shift);
}
// Likewise by more rows than row_words holds.
uint64_t strided_far(uint64_t base, uint i, uint shift, uint rank, uint width, uint column, uint first) {
  int offset = 0;
  for (uint d = 0u; d < rank; ++d) {
    Ints row = Ints(rows + uint64_t(first + d * width) * 4ul);
    const uint outer = d + 1u < rank ? quotient(i, uint(row.v[1]), uint(row.v[2])) : 0u;
    offset += int(i - outer * uint(row.v[0])) * row.v[column];
    i = outer;
  }
  return base + (int64_t(offset) << shift);
}

// A number of its bits. Not a constant of the shader: of those llvmpipe takes x * 0 for 0 and x + 0 for x.
bool number_bool(uint64_t bits) { return (bits & 1ul) != 0ul; }
int8_t number_int8(uint64_t bits) { return int8_t(bits); }
int16_t number_int16(uint64_t bits) { return int16_t(bits); }
int number_int32(uint64_t bits) { return int(uint(bits)); }
int64_t number_int64(uint64_t bits) { return int64_t(bits); }
uint8_t number_uint8(uint64_t bits) { return uint8_t(bits); }
uint16_t number_uint16(uint64_t bits) { return uint16_t(bits); }
uint number_uint32(uint64_t bits) { return uint(bits); }
uint64_t number_uint64(uint64_t bits) { return bits; }
float number_float32(uint64_t bits) { return uintBitsToFloat(uint(bits)); }
vec2 number_complex64(uint64_t bits) { return uintBitsToFloat(unpackUint2x32(bits)); }
#ifdef BACKPLANE_FLOAT64
double number_float64(uint64_t bits) { return packDouble2x32(unpackUint2x32(bits)); }
dvec2 number_complex128(uint64_t re, uint64_t im) { return dvec2(number_float64(re), number_float64(im)); }
#endif

bool load_bool(uint64_t a) { return Ref8(a).v != uint8_t(0); }
int8_t load_int8(uint64_t a) { return int8_t(Ref8(a).v); }
int16_t load_int16(uint64_t a) { return int16_t(Ref16(a).v); }
int load_int32(uint64_t a) { return int(Ref32(a).v); }
int64_t load_int64(uint64_t a) { return int64_t(Ref64(a).v); }
uint8_t load_uint8(uint64_t a) { return Ref8(a).v; }
uint16_t load_uint16(uint64_t a) { return Ref16(a).v; }
uint load_uint32(uint64_t a) { return Ref32(a).v; }
uint64_t load_uint64(uint64_t a) { return Ref64(a).v; }
float load_float16(uint64_t a) { return bp_float32_of_float16(uint(Ref16(a).v)); }
float load_bfloat16(uint64_t a) { return bp_float32_of_bfloat16(uint(Ref16(a).v)); }
float load_float32(uint64_t a) { return uintBitsToFloat(Ref32(a).v); }
vec2 load_complex64(uint64_t a) { return uintBitsToFloat(unpackUint2x32(Ref64(a).v)); }

void store_bool(uint64_t a, bool v) { Ref8(a).v = uint8_t(v ? 1 : 0); }
void store_int8(uint64_t a, int8_t v) { Ref8(a).v = uint8_t(v); }
void store_int16(uint64_t a, int16_t v) { Ref16(a).v = uint16_t(v); }
void store_int32(uint64_t a, int v) { Ref32(a).v = uint(v); }
void store_int64(uint64_t a, int64_t v) { Ref64(a).v = uint64_t(v); }
void store_uint8(uint64_t a, uint8_t v) { Ref8(a).v = v; }
void store_uint16(uint64_t a, uint16_t v) { Ref16(a).v = v; }
void store_uint32(uint64_t a, uint v) { Ref32(a).v = v; }
void store_uint64(uint64_t a, uint64_t v) { Ref64(a).v = v; }
void store_float16(uint64_t a, float v) { Ref16(a).v = uint16_t(bp_float16_of_float32(v)); }
void store_bfloat16(uint64_t a, float v) { Ref16(a).v = uint16_t(bp_bfloat16_of_float32(v)); }
void store_float32(uint64_t a, float v) { Ref32(a).v = floatBitsToUint(v); }
void store_complex64(uint64_t a, vec2 v) { Ref64(a).v = packUint2x32(floatBitsToUint(v)); }
#ifdef BACKPLANE_FLOAT64
double load_float64(uint64_t a) { return packDouble2x32(unpackUint2x32(Ref64(a).v)); }
dvec2 load_complex128(uint64_t a) { return dvec2(load_float64(a), load_float64(a + 8ul)); }
void store_float64(uint64_t a, double v) { Ref64(a).v = packUint2x32(unpackDouble2x32(v)); }
void store_complex128(uint64_t a, dvec2 v) {
  store_float64(a, v.x);
  store_float64(a + 8ul, v.y);
}
#endif

// What a float16 or bfloat16 keeps of a value.
float rounded_float16(float v) { return bp_float32_of_float16(bp_float16_of_float32(v)); }
float rounded_bfloat16(float v) { return bp_float32_of_bfloat16(bp_bfloat16_of_float32(v)); }

// For values that all invocations have computed.
#define ONCE(dtype, type) \
  void store_once_##dtype(uint64_t a, type v) { \
    if (gl_GlobalInvocationID.x == 0u) store_##dtype(a, v); \
  }
ONCE(bool, bool)
ONCE(int8, int8_t)
ONCE(int16, int16_t)
ONCE(int32, int)
ONCE(int64, int64_t)
ONCE(uint8, uint8_t)
ONCE(uint16, uint16_t)
ONCE(uint32, uint)
ONCE(uint64, uint64_t)
ONCE(float16, float)
ONCE(bfloat16, float)
ONCE(float32, float)
ONCE(complex64, vec2)
#ifdef BACKPLANE_FLOAT64
ONCE(float64, double)
ONCE(complex128, dvec2)
#endif

#define UNARY(op, function, number) function(x);
#define BINARY(op, function, number) function(x, x);
#define SAME(dtype) \
  BP_SCALAR_UNARY_##dtype##_##dtype(UNARY) BP_SCALAR_BINARY_##dtype##_##dtype(BINARY) bp_where_##dtype(true, x, x);
#define COMPARED(dtype) BP_SCALAR_UNARY_##dtype##_bool(UNARY) BP_SCALAR_BINARY_##dtype##_bool(BINARY)
#ifdef BACKPLANE_FLOAT64
#define CASTS_TO_FLOAT64(dtype) bp_cast_##dtype##_float64(x); bp_cast_##dtype##_complex128(x);
#else
#define CASTS_TO_FLOAT64(dtype)
#endif
#define CASTS(dtype) \
  bp_cast_##dtype##_bool(x); bp_cast_##dtype##_int8(x); bp_cast_##dtype##_int16(x); bp_cast_##dtype##_int32(x); \
  bp_cast_##dtype##_int64(x); bp_cast_##dtype##_uint8(x); bp_cast_##dtype##_uint16(x); bp_cast_##dtype##_uint32(x); \
  bp_cast_##dtype##_uint64(x); bp_cast_##dtype##_float32(x); bp_cast_##dtype##_complex64(x); CASTS_TO_FLOAT64(dtype)
#define STORED(dtype, type) \
  { \
    const type x = load_##dtype(a); \
    store_##dtype(a, x); \
    store_once_##dtype(a, x); \
  }
#define NUMBERS(dtype, type, bits) \
  { \
    number_##dtype bits; \
    type x = load_##dtype(a); \
    SAME(dtype) COMPARED(dtype) CASTS(dtype) \
  } \
  STORED(dtype, type)

void every_function(uint i) {
  read_rows(1u);
  const uint64_t a = linear(pushed(0u), i, 2u) + strided(listed(1u), i, 2u, 1u, 4u, 3u, 0u) +
                     strided_far(0ul, i, 2u, 1u, 4u, 3u, 0u);
  {
    bool x = load_bool(a);
    SAME(bool) CASTS(bool) number_bool(a);
  }
  STORED(bool, bool)
  NUMBERS(int8, int8_t, (a))
  NUMBERS(int16, int16_t, (a))
  NUMBERS(int32, int, (a))
  NUMBERS(int64, int64_t, (a))
  NUMBERS(uint8, uint8_t, (a))
  NUMBERS(uint16, uint16_t, (a))
  NUMBERS(uint32, uint, (a))
  NUMBERS(uint64, uint64_t, (a))
  NUMBERS(float32, float, (a))
  NUMBERS(complex64, vec2, (a))
  STORED(float16, float)
  STORED(bfloat16, float)
  float x = rounded_float16(1.0f) + rounded_bfloat16(1.0f);
  BP_SCALAR_BINARY_float32_complex64(BINARY)
  {
    vec2 x = load_complex64(a);
    BP_SCALAR_UNARY_complex64_float32(UNARY)
  }
#ifdef BACKPLANE_FLOAT64
  NUMBERS(float64, double, (a))
  NUMBERS(complex128, dvec2, (a, a))
  {
    double x = load_float64(a);
    BP_SCALAR_BINARY_float64_complex128(BINARY)
  }
  {
    dvec2 x = load_complex128(a);
    BP_SCALAR_UNARY_complex128_float64(UNARY)
  }
#endif
}

void receive() {
  table = push.table;
  rows = table + uint64_t(push.skipped);
  for (uint k = 0u; k < 14u; ++k) at[k] = push.at[k];
}
