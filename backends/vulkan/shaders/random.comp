// Random bits: Philox 4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011).
//
// at: result, key, counter. n: words of 32 bits. Word i is word i % 4 of the block at counter + i / 4. kOption 1: the result
// begins at a whole word of 64 bits.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "call.glsl"

uvec4 philox(uvec2 key, uint64_t counter) {
  uvec4 block = uvec4(unpackUint2x32(counter), 0u, 0u);
  for (int round = 0; round < 10; ++round) {
    uint high, low, other_high, other_low;
    umulExtended(0xD2511F53u, block.x, high, low);
    umulExtended(0xCD9E8D57u, block.z, other_high, other_low);
    block = uvec4(other_high ^ block.y ^ key.x, other_low, high ^ block.w ^ key.y, low);
    key += uvec2(0x9E3779B9u, 0xBB67AE85u);
  }
  return block;
}

void main() {
  receive();
  const uint words = n[0], blocks = (words + 3u) / 4u;
  for (uint i = gl_GlobalInvocationID.x; i < blocks; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
    const uvec4 block = philox(unpackUint2x32(at[1]), at[2] + uint64_t(i));
    const uint64_t to = at[0] + uint64_t(i) * 16ul;
    if (kOption == 1u && i * 4u + 4u <= words) {
      Ref64(to).v = packUint2x32(block.xy);
      Ref64(to + 8ul).v = packUint2x32(block.zw);
      continue;
    }
    for (uint k = 0u; k < 4u && i * 4u + k < words; ++k) Ref32(to + uint64_t(k) * 4ul).v = block[k];
  }
}
