// When plans are made, and which are kept.
#include "kernels/linalg/plan_cache.hpp"

#include <gtest/gtest.h>

namespace backplane::cpu {
namespace {

struct Counted {
  PlanCache<int, int, 8> cache;
  int made = 0;
  int find(int key) {
    return cache.find(key, [&] { return ++made, 10 * key; });
  }
};

TEST(PlanCache, MakesAPlanOnce) {
  Counted counted;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(counted.find(3), 30);
  EXPECT_EQ(counted.made, 1);
}

TEST(PlanCache, KeepsAsManyAsItSays) {
  Counted counted;
  for (int i = 0; i < 5; ++i)
    for (int key = 0; key < 8; ++key) EXPECT_EQ(counted.find(key), 10 * key);
  EXPECT_EQ(counted.made, 8);
}

TEST(PlanCache, AFullOneKeepsANewPlan) {
  Counted counted;
  for (int key = 0; key < 9; ++key) counted.find(key);
  EXPECT_EQ(counted.find(8), 80);
  EXPECT_EQ(counted.made, 9);
}

TEST(PlanCache, ARoundOfOneKeyTooManyMakesFewPlansAnew) {
  Counted counted;
  constexpr int kRounds = 100;
  for (int i = 0; i < kRounds; ++i)
    for (int key = 0; key < 9; ++key) EXPECT_EQ(counted.find(key), 10 * key);
  EXPECT_LT(counted.made, 9 * kRounds / 2);  // all, if the least recently used were dropped
}

}  // namespace
}  // namespace backplane::cpu
