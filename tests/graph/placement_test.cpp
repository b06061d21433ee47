// The laws of an arena: no two blocks that live at once share bytes, and it is not larger than it would be without
// sharing.
#include "graph/plans/placement.hpp"

#include <gtest/gtest.h>

#include <random>

#include "backplane/error.hpp"

namespace backplane::core::graph {
namespace {

bool live_at_once(const Lifetime& a, const Lifetime& b) { return a.first <= b.last && b.first <= a.last; }

void expect_lawful(const std::vector<Lifetime>& blocks, uint64_t alignment) {
  const Placement placed = place_blocks(blocks, alignment);
  ASSERT_EQ(placed.offsets.size(), blocks.size());
  for (size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_EQ(placed.offsets[i] % alignment, 0u);
    EXPECT_LE(placed.offsets[i] + blocks[i].size, placed.size);
    for (size_t k = 0; k < i; ++k) {
      const bool apart = placed.offsets[i] + std::max<uint64_t>(blocks[i].size, 1) <= placed.offsets[k] ||
                         placed.offsets[k] + std::max<uint64_t>(blocks[k].size, 1) <= placed.offsets[i];
      EXPECT_TRUE(apart || !live_at_once(blocks[i], blocks[k])) << i << " and " << k;
    }
  }
  EXPECT_LE(placed.bound, placed.size);
  EXPECT_LE(placed.size, placed.separate);
}

TEST(Placement, BlocksThatLiveAtOnceAreApart) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<Lifetime> blocks;
    for (uint32_t i = 0; i < 1 + random() % 60; ++i) {
      const auto first = static_cast<uint32_t>(random() % 40);
      blocks.push_back({random() % 5000, first, first + static_cast<uint32_t>(random() % 10)});
    }
    expect_lawful(blocks, uint64_t{1} << (random() % 8));
  }
}

TEST(Placement, AChainTakesTwoBlocks) {
  std::vector<Lifetime> chain;
  for (uint32_t i = 0; i < 1000; ++i) chain.push_back({4096, i, i + 1});
  const Placement placed = place_blocks(chain, 64);
  EXPECT_EQ(placed.size, 2 * 4096u);
  EXPECT_EQ(placed.bound, 2 * 4096u);
  EXPECT_EQ(placed.separate, 1000 * 4096u);
}

TEST(Placement, NeighboursThatAreFreeServeALargerBlock) {
  // Four small blocks, then one of their total size.
  const std::vector<Lifetime> blocks = {{64, 0, 1}, {64, 0, 2}, {64, 0, 1}, {64, 0, 2}, {256, 3, 4}};
  EXPECT_EQ(place_blocks(blocks, 64).size, 256u);
}

TEST(Placement, SizesBeyond64BitsAreRefused) {
  EXPECT_THROW(place_blocks(std::vector<Lifetime>{{UINT64_MAX - 10, 0, 0}}, 64), Error);
  EXPECT_THROW(place_blocks(std::vector<Lifetime>{{UINT64_MAX / 2, 0, 0}, {UINT64_MAX / 2 + 2, 1, 1}}, 1), Error);
  EXPECT_EQ(place_blocks({}, 64).size, 0u);
}

}  // namespace
}  // namespace backplane::core::graph
