// Where the operands of an elementwise loop have their elements (set_rows in kernels/elementwise.cpp). kOption, bits 5 to
// 7, is the loop's rank, so that the driver leaves out what another one needs.
//
// n: count, rank, mask of operands that are one element for all; then, of a rank up to 3, per dimension, innermost first,
// a size, its multiplier, its shift and an element stride per operand, of the outermost the strides alone.
#include "call.glsl"

const uint kRank = kOption >> 5;
const uint kFlat = 0, kRowsInMemory = 7;

void loop_offsets(uint i, uint operands, out int offsets[4]) {
  if (kRank == kRowsInMemory) {
    offsets_of(i, dims, n[1], operands, offsets);
    return;
  }
  offsets = int[4](0, 0, 0, 0);
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
