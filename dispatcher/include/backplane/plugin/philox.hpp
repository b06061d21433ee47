// Philox 4x32-10, the bits behind every random op (Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers: As Easy as
// 1, 2, 3", SC 2011). Pure.
#pragma once

#include <array>
#include <cstdint>

namespace backplane::plugin {

inline constexpr int kPhiloxRounds = 10;
inline constexpr uint32_t kPhiloxMultipliers[2] = {0xD2511F53, 0xCD9E8D57};
inline constexpr uint32_t kPhiloxWeyl[2] = {0x9E3779B9, 0xBB67AE85};  // added to the key between rounds

// The block at `counter`, four words. Element i of a 32-bit draw that begins at `first` is word i % 4 of the block at
// first + i / 4; one of 64 bits takes two words, the low one first.
constexpr std::array<uint32_t, 4> philox(uint64_t key, uint64_t counter) {
  auto low = static_cast<uint32_t>(key), high = static_cast<uint32_t>(key >> 32);
  std::array<uint32_t, 4> block{static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0};
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const uint64_t first = uint64_t{kPhiloxMultipliers[0]} * block[0],
                   second = uint64_t{kPhiloxMultipliers[1]} * block[2];
    block = {static_cast<uint32_t>(second >> 32) ^ block[1] ^ low, static_cast<uint32_t>(second),
             static_cast<uint32_t>(first >> 32) ^ block[3] ^ high, static_cast<uint32_t>(first)};
    low += kPhiloxWeyl[0];
    high += kPhiloxWeyl[1];
  }
  return block;
}

}  // namespace backplane::plugin
