// What every kernel receives (Push in runtime/stream.hpp), and how it reads and writes elements of any dtype.
//
// Operands are addresses; element offsets are added to them in 64 bits. A format is a dtype by its number in the
// contract (backplane/abi/base.h). A class of dtypes is read as one type: all integers as 64 bits, float16 and bfloat16
// as float.
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_16bit_storage : require
#ifndef BACKPLANE_FLOAT64
#define BP_SCALAR_WITHOUT_FLOAT64
#endif
#include "backplane/scalar.glsl"

#ifndef BACKPLANE_GROUP_SHAPE
layout(local_size_x = 256) in;
#endif

layout(constant_id = 0) const uint kFunction = 0;
layout(constant_id = 1) const uint kIn = 0;   // format of what is read
layout(constant_id = 2) const uint kOut = 0;  // format of what is written
layout(constant_id = 3) const uint kOption = 0;

layout(push_constant, std430) uniform Push {
  uint64_t at[4];
  uint64_t dims;
  uint64_t fault;
  uint64_t ticket;
  uint n[18];
} push;

// What was pushed, read once, by `receive` at the start of main: what stands in a loop or a branch lavapipe 22.3 reads
// lane by lane.
uint64_t at[4];
uint64_t dims;
uint64_t fault;
uint64_t ticket;
uint n[18];
void receive() {
  for (uint i = 0u; i < 4u; ++i) at[i] = push.at[i];
  for (uint i = 0u; i < 18u; ++i) n[i] = push.n[i];
  dims = push.dims;
  fault = push.fault;
  ticket = push.ticket;
}

const uint kBool = 0, kInt8 = 1, kInt16 = 2, kInt32 = 3, kInt64 = 4, kUint8 = 5, kUint16 = 6, kUint32 = 7, kUint64 = 8;
const uint kFloat16 = 9, kBfloat16 = 10, kFloat32 = 11, kFloat64 = 12, kComplex64 = 13, kComplex128 = 14;
const uint format_float32 = kFloat32, format_float64 = kFloat64;  // of a class

layout(buffer_reference, std430, buffer_reference_align = 1) buffer Ref8 { uint8_t v; };
layout(buffer_reference, std430, buffer_reference_align = 2) buffer Ref16 { uint16_t v; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Ref32 { uint v; };
layout(buffer_reference, std430, buffer_reference_align = 8) buffer Ref64 { uint64_t v; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Ints { int v[]; };

uint shift_of(uint format) {  // log2 of an element's bytes
  return uint(0x433211321032100ul >> (format * 4u) & 15ul);
}
uint64_t element(uint64_t base, int offset, uint format) { return base + (int64_t(offset) << shift_of(format)); }

// An element of up to 64 bits, as it stands in memory.
uint64_t word_at(uint64_t address, uint format) {
  switch (shift_of(format)) {
    case 0: return uint64_t(Ref8(address).v);
    case 1: return uint64_t(Ref16(address).v);
    case 2: return uint64_t(Ref32(address).v);
    default: return Ref64(address).v;
  }
}
void store_word(uint64_t address, uint format, uint64_t word) {
  switch (shift_of(format)) {
    case 0: Ref8(address).v = uint8_t(word); break;
    case 1: Ref16(address).v = uint16_t(word); break;
    case 2: Ref32(address).v = uint(word); break;
    default: Ref64(address).v = word;
  }
}

int64_t int64_of(uint64_t word, uint format) {
  switch (format) {
    case kInt8: return int64_t(int8_t(word));
    case kInt16: return int64_t(int16_t(word));
    case kInt32: return int64_t(int(uint(word)));
    case kBool: return word != 0ul ? 1l : 0l;
    default: return int64_t(word);
  }
}
float float32_of(uint64_t word, uint format) {
  switch (format) {
    case kFloat16: return bp_float32_of_float16(uint(word));
    case kBfloat16: return bp_float32_of_bfloat16(uint(word));
    default: return uintBitsToFloat(uint(word));
  }
}
uint64_t word_of(float value, uint format) {
  switch (format) {
    case kFloat16: return uint64_t(bp_float16_of_float32(value));
    case kBfloat16: return uint64_t(bp_bfloat16_of_float32(value));
    default: return uint64_t(floatBitsToUint(value));
  }
}

bool load_bool(uint64_t a, uint format) { return Ref8(a).v != uint8_t(0); }
int8_t load_int8(uint64_t a, uint format) { return int8_t(Ref8(a).v); }
uint8_t load_uint8(uint64_t a, uint format) { return Ref8(a).v; }
int16_t load_int16(uint64_t a, uint format) { return int16_t(Ref16(a).v); }
uint16_t load_uint16(uint64_t a, uint format) { return Ref16(a).v; }
int load_int32(uint64_t a, uint format) { return int(Ref32(a).v); }
uint load_uint32(uint64_t a, uint format) { return Ref32(a).v; }
int64_t load_int64(uint64_t a, uint format) { return int64_of(word_at(a, format), format); }
uint64_t load_uint64(uint64_t a, uint format) { return Ref64(a).v; }
float load_float32(uint64_t a, uint format) { return float32_of(word_at(a, format), format); }
vec2 load_complex64(uint64_t a, uint format) { return uintBitsToFloat(unpackUint2x32(Ref64(a).v)); }

void store(uint64_t a, uint format, bool v) { Ref8(a).v = uint8_t(v ? 1 : 0); }
void store(uint64_t a, uint format, int8_t v) { Ref8(a).v = uint8_t(v); }
void store(uint64_t a, uint format, uint8_t v) { Ref8(a).v = v; }
void store(uint64_t a, uint format, int16_t v) { Ref16(a).v = uint16_t(v); }
void store(uint64_t a, uint format, uint16_t v) { Ref16(a).v = v; }
void store(uint64_t a, uint format, int v) { Ref32(a).v = uint(v); }
void store(uint64_t a, uint format, uint v) { Ref32(a).v = v; }
void store(uint64_t a, uint format, int64_t v) { store_word(a, format, uint64_t(v)); }
void store(uint64_t a, uint format, uint64_t v) { store_word(a, format, v); }
void store(uint64_t a, uint format, float v) { store_word(a, format, word_of(v, format)); }
void store(uint64_t a, uint format, vec2 v) { Ref64(a).v = packUint2x32(floatBitsToUint(v)); }
// An element of up to 32 bits of its word, and back.
bool value_bool(uint64_t w, uint format) { return w != 0ul; }
int8_t value_int8(uint64_t w, uint format) { return int8_t(w); }
uint8_t value_uint8(uint64_t w, uint format) { return uint8_t(w); }
int16_t value_int16(uint64_t w, uint format) { return int16_t(w); }
uint16_t value_uint16(uint64_t w, uint format) { return uint16_t(w); }
int value_int32(uint64_t w, uint format) { return int(uint(w)); }
uint value_uint32(uint64_t w, uint format) { return uint(w); }
float value_float32(uint64_t w, uint format) { return float32_of(w, format); }
uint64_t word(bool v, uint format) { return v ? 1ul : 0ul; }
uint64_t word(int8_t v, uint format) { return uint64_t(uint8_t(v)); }
uint64_t word(uint8_t v, uint format) { return uint64_t(v); }
uint64_t word(int16_t v, uint format) { return uint64_t(uint16_t(v)); }
uint64_t word(uint16_t v, uint format) { return uint64_t(v); }
uint64_t word(int v, uint format) { return uint64_t(uint(v)); }
uint64_t word(uint v, uint format) { return uint64_t(v); }
uint64_t word(float v, uint format) { return word_of(v, format); }
uint64_t word(vec2 v, uint format) { return packUint2x32(floatBitsToUint(v)); }
#ifdef BACKPLANE_FLOAT64
double load_float64(uint64_t a, uint format) { return packDouble2x32(unpackUint2x32(Ref64(a).v)); }
dvec2 load_complex128(uint64_t a, uint format) { return dvec2(load_float64(a, format), load_float64(a + 8ul, format)); }
void store(uint64_t a, uint format, double v) { Ref64(a).v = packUint2x32(unpackDouble2x32(v)); }
void store(uint64_t a, uint format, dvec2 v) {
  store(a, format, v.x);
  store(a + 8ul, format, v.y);
}
#endif

// Moves an element of any width without looking at it.
void move(uint64_t to, uint64_t from, uint format) {
  if (shift_of(format) < 4u) {
    store_word(to, format, word_at(from, format));
  } else {
    const uint64_t low = Ref64(from).v, high = Ref64(from + 8ul).v;
    Ref64(to).v = low;
    Ref64(to + 8ul).v = high;
  }
}

// The quotient of i < 2^31 by a size, by the multiplier and the shift that Rows::add made for it (Granlund and Montgomery,
// "Division by Invariant Integers using Multiplication", 1994). A multiplier of 0 is that of an outermost axis.
uint quotient(uint i, uint multiplier, uint shift) {
  uint high, low;
  umulExtended(i, multiplier, high, low);
  return high >> shift;
}

// Likewise by a size that may be 1, of which the multiplier is 0 (divide_by in kernels/call.hpp).
uint divided(uint i, uint multiplier, uint shift) { return multiplier == 0u ? i : quotient(i, multiplier, shift); }

// Rows of ints in memory, one per dimension, innermost first: a size, its multiplier and shift, and an element stride
// per operand. The element offsets of position i, in the first operands.
void offsets_of(uint i, uint64_t rows, uint rank, uint operands, out int offsets[4]) {
  offsets = int[4](0, 0, 0, 0);
  for (uint d = 0u; d < rank; ++d) {
    Ints row = Ints(rows + uint64_t(d * (operands + 3u)) * 4ul);
    const uint outer = quotient(i, uint(row.v[1]), uint(row.v[2]));
    const int index = int(i - outer * uint(row.v[0]));
    i = outer;
    for (uint k = 0u; k < operands; ++k) offsets[k] += index * row.v[k + 3u];
  }
}
uint64_t rows_behind(uint64_t rows, uint rank, uint operands) { return rows + uint64_t(rank * (operands + 3u)) * 4ul; }

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
