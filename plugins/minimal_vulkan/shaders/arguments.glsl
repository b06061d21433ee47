// What every kernel receives (kernels/arguments.hpp), and how it finds and moves elements. All addresses are plain
// numbers of 64 bits.
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types : require

#include "kernels/list.h"

layout(local_size_x = 64) in;
// What a pipeline is made for; see runtime/device.hpp.
layout(constant_id = 0) const uint kKernel = 0;
layout(constant_id = 1) const uint kFunction = 0;
layout(constant_id = 2) const uint kSecond = 0;
layout(constant_id = 3) const uint kIn = 0;
layout(constant_id = 4) const uint kOut = 0;

layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer Arguments {
  uint64_t at[4];
  int64_t n[6];
  uint64_t found;
  int64_t items;
  uint rank[2];
  uint constants[4];
  int64_t rows[];
};
layout(push_constant, std430) uniform Push { Arguments call; };

layout(buffer_reference, std430, buffer_reference_align = 1) buffer Ref8 { uint8_t v; };
layout(buffer_reference, std430, buffer_reference_align = 2) buffer Ref16 { uint16_t v; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Ref32 { uint v; };
layout(buffer_reference, std430, buffer_reference_align = 8) buffer Ref64 { uint64_t v; };

// Dtypes by their number in the contract.
const uint kInt64 = 4, kFloat16 = 9, kBfloat16 = 10, kComplex128 = 14;

uint shift_of(uint dtype) {  // log2 of an element's bytes
  return uint(0x433211321032100ul >> (dtype * 4u) & 15ul);
}
uint64_t element(uint64_t base, int64_t position, uint dtype) { return base + (position << shift_of(dtype)); }

// An element of up to 64 bits, as it stands in memory; of a wider one, the first 64.
uint64_t word_at(uint64_t address, uint dtype) {
  switch (shift_of(dtype)) {
    case 0: return uint64_t(Ref8(address).v);
    case 1: return uint64_t(Ref16(address).v);
    case 2: return uint64_t(Ref32(address).v);
    default: return Ref64(address).v;
  }
}
void put_word(uint64_t address, uint dtype, uint64_t word) {
  switch (shift_of(dtype)) {
    case 0: Ref8(address).v = uint8_t(word); break;
    case 1: Ref16(address).v = uint16_t(word); break;
    case 2: Ref32(address).v = uint(word); break;
    default: Ref64(address).v = word;
  }
}

// Byte offsets of the operands at position i of the first loop (0) or the second one (1).
void offsets_of(int64_t i, uint loop, out int64_t offsets[4]) {
  offsets = int64_t[4](0l, 0l, 0l, 0l);
  const uint first = loop == 0u ? 0u : call.rank[0];
  for (uint d = call.rank[loop]; d-- > 0u;) {
    const uint row = 5u * (first + d);
    const int64_t size = call.rows[row], here = i % size;
    i /= size;
    offsets[0] += here * call.rows[row + 1u];
    offsets[1] += here * call.rows[row + 2u];
    offsets[2] += here * call.rows[row + 3u];
    offsets[3] += here * call.rows[row + 4u];
  }
}

void report() { Ref32(call.found).v = 1u; }

// A case of main's switch: the kernel, for the items of this invocation.
#define MINIMAL_CASE(name, number)                                                                           \
  case number:                                                                                               \
    for (int64_t i = gl_GlobalInvocationID.x; i < call.items; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) \
      name(i);                                                                                               \
    break;
