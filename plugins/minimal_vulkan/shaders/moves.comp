// Kernels that move elements by their width, kOut's, and random bits.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "arguments.glsl"

void move_element(uint64_t to, uint64_t from) {
  const uint64_t low = word_at(from, kOut), high = kOut == kComplex128 ? Ref64(from + 8ul).v : 0ul;
  put_word(to, kOut, low);
  if (kOut == kComplex128) Ref64(to + 8ul).v = high;
}

void move(int64_t i) {
  int64_t o[4];
  offsets_of(i, 0u, o);
  move_element(call.at[0] + o[0], call.at[1] + o[1]);
}

void choose(int64_t i) {
  int64_t o[4];
  offsets_of(i, 0u, o);
  const bool holds = Ref8(call.at[1] + o[1]).v != uint8_t(0);
  move_element(call.at[0] + o[0], holds ? call.at[2] + o[2] : call.at[3] + o[3]);
}

// n: the bits of the element.
void fill(int64_t i) {
  const uint64_t to = element(call.at[0], i, kOut);
  put_word(to, kOut, call.n[0]);
  if (kOut == kComplex128) Ref64(to + 8ul).v = call.n[1];
}

// Of the two that follow the first loop is over the joint positions of the indices, the second over the kept axes; its
// operands are the selected elements, then the indexed ones. at: result, the other one, offsets of the joint positions.
// n: positions of the inner loop.
void gather(int64_t i) {
  int64_t joint[4], kept[4];
  offsets_of(i / call.n[0], 0u, joint);
  offsets_of(i % call.n[0], 1u, kept);
  const int64_t from = int64_t(Ref64(element(call.at[2], i / call.n[0], kInt64)).v);
  move_element(call.at[0] + joint[0] + kept[0], call.at[1] + from + kept[1]);
}

// An item per kept element, which takes the joint positions in their order: the last value stays. n: begin and end of the
// joint positions that this launch takes.
void put_selected(int64_t i) {
  int64_t joint[4], kept[4];
  offsets_of(i, 1u, kept);
  for (int64_t j = call.n[0]; j < call.n[1]; ++j) {
    offsets_of(j, 0u, joint);
    const int64_t to = int64_t(Ref64(element(call.at[2], j, kInt64)).v);
    move_element(call.at[0] + to + kept[1], call.at[1] + joint[0] + kept[0]);
  }
}

// Philox 4x32-10: word k of the block at counter + i is word 4 i + k. n: words, key, counter.
void draw(int64_t i) {
  uvec2 key = unpackUint2x32(uint64_t(call.n[1]));
  uvec4 block = uvec4(unpackUint2x32(uint64_t(call.n[2] + i)), 0u, 0u);
  for (int round = 0; round < 10; ++round) {
    uint high0, low0, high2, low2;
    umulExtended(0xD2511F53u, block.x, high0, low0);
    umulExtended(0xCD9E8D57u, block.z, high2, low2);
    block = uvec4(high2 ^ block.y ^ key.x, low2, high0 ^ block.w ^ key.y, low0);
    key += uvec2(0x9E3779B9u, 0xBB67AE85u);
  }
  for (int k = 0; k < 4 && i * 4l + k < call.n[0]; ++k) Ref32(call.at[0] + (i * 4l + k) * 4l).v = block[k];
}

void main() {
  switch (kKernel) { MINIMAL_MOVING_KERNELS(MINIMAL_CASE) }
}
