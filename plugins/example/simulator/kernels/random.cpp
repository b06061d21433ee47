// random_bits: Philox 4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011).
//
// Element i takes word i % 4 of the block at counter + i / 4; a 64-bit element takes two words, the low one first.
#include <array>

#include "kernels.hpp"

namespace sim {
namespace {

using Block = std::array<uint32_t, 4>;

Block philox(uint64_t key, uint64_t counter) {
  constexpr uint64_t kMultipliers[2] = {0xD2511F53, 0xCD9E8D57};
  constexpr uint32_t kWeyl[2] = {0x9E3779B9, 0xBB67AE85};  // added to the key between rounds
  auto low = static_cast<uint32_t>(key), high = static_cast<uint32_t>(key >> 32);
  Block block{static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0};
  for (int round = 0; round < 10; ++round) {
    const uint64_t first = kMultipliers[0] * block[0], second = kMultipliers[1] * block[2];
    block = {static_cast<uint32_t>(second >> 32) ^ block[1] ^ low, static_cast<uint32_t>(second),
             static_cast<uint32_t>(first >> 32) ^ block[3] ^ high, static_cast<uint32_t>(first)};
    low += kWeyl[0];
    high += kWeyl[1];
  }
  return block;
}

void random_bits(const Call& call) {
  const Operand out = call.output(0);
  const bp_generator_state state = *call.value(3).u.g;
  const int64_t words = out.count() * (out.dtype == BP_UINT64 ? 2 : 1);  // little-endian: the low word comes first
  call.record([first = reinterpret_cast<uint32_t*>(out.data), words, state] {
    for (int64_t i = 0; i < words; i += 4) {
      const Block block = philox(state.key, state.counter + static_cast<uint64_t>(i / 4));
      for (int64_t k = 0; k < 4 && i + k < words; ++k) first[i + k] = block[static_cast<size_t>(k)];
    }
  });
}

constexpr Row kRows[] = {{"bp::random_bits", kernel<random_bits>, BP_MASK_ANY, 0}};

}  // namespace

Table random_kernels() { return {__FILE__, kRows}; }

}  // namespace sim
