// Where the operands of an elementwise loop have their elements (set_rows in kernels/elementwise.cpp). kOption, bits 5 to
// 7, is the loop's rank, so that the driver leaves out what another one needs.
//
// n: count, rank, mask of operands that are one element for all; then, of a rank up to 3, per dimension, innermost first,
// a size, its multiplier, its shift and an element stride per operand, of the outermost the strides alone.
#include "call.glsl"

const uint kRank = kOption >> 5;
const uint kFlat = 0, kPairs = 4, kRowsInMemory = 7;
// Flat, and two neighbours at a time, which lie in one aligned word of at most 64 bits in every operand that has more than
// one element: on drivers that serve accesses one by one their number is what counts. n[0] is the count of pairs.
const bool kPaired = kRank == kPairs;

void loop_offsets(uint i, uint operands, out int offsets[4]) {
  if (kRank == kRowsInMemory) {
    offsets_of(i, dims, n[1], operands, offsets);
    return;
  }
  offsets = int[4](0, 0, 0, 0);
  if (kPaired) return;
  uint at_word = 3u;
  for (uint d = 1u; d < kRank; ++d) {
    const uint outer = quotient(i, n[at_word + 1u], n[at_word + 2u]);
    const int index = int(i - outer * n[at_word]);
    for (uint k = 0u; k < operands; ++k) offsets[k] += index * int(n[at_word + 3u + k]);
    i = outer;
    at_word += operands + 3u;
  }
  for (uint k = 0u; k < operands; ++k)
    offsets[k] += kRank == kFlat ? ((n[2] >> k & 1u) != 0u ? 0 : int(i)) : int(i) * int(n[at_word + k]);
}

// Of pair i, the words; `single`: of what is one element for all. Element e of a word is its low or its high half.
bool is_single(uint operand) { return (n[2] >> operand & 1u) != 0u; }
uint64_t pair_at(uint i, uint operand, uint format) {
  if (is_single(operand)) return word_at(at[operand], format);
  const uint64_t address = at[operand] + (uint64_t(i) << (shift_of(format) + 1u));
  switch (shift_of(format)) {
    case 0: return uint64_t(Ref16(address).v);
    case 1: return uint64_t(Ref32(address).v);
    default: return Ref64(address).v;
  }
}
uint64_t half_of(uint64_t pair, uint e, uint operand, uint format) {
  const uint bits = 8u << shift_of(format);
  return (is_single(operand) ? pair : pair >> (e * bits)) & ((1ul << bits) - 1ul);
}
void store_pair_at(uint i, uint format, uint64_t pair) {
  const uint64_t address = at[0] + (uint64_t(i) << (shift_of(format) + 1u));
  switch (shift_of(format)) {
    case 0: Ref16(address).v = uint16_t(pair); break;
    case 1: Ref32(address).v = uint(pair); break;
    default: Ref64(address).v = pair;
  }
}
