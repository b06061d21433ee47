// When plans are made, and which are kept.
#include "kernels/linalg/plan_cache.hpp"

#include <gtest/gtest.h>

namespace backplane::cpu {
namespace {

struct Counted {
  PlanCache<int, int, 8> cache;
  int made = 0;
  const int* find(int key) {
    return cache.find(key, [&] { return ++made, 10 * key; });
  }
};

TEST(PlanCache, MakesAPlanAtSecondSightOnce) {
  Counted counted;
  EXPECT_EQ(counted.find(3), nullptr);
  for (int i = 0; i < 3; ++i) {
    const int* plan = counted.find(3);
    ASSERT_NE(plan, nullptr);
    EXPECT_EQ(*plan, 30);
  }
  EXPECT_EQ(counted.made, 1);
}

TEST(PlanCache, MakesNoneForKeysThatComeOnce) {
  Counted counted;
  for (int key = 0; key < 1000; ++key) EXPECT_EQ(counted.find(key), nullptr);
  EXPECT_EQ(counted.made, 0);
}

TEST(PlanCache, KeysThatComeOnceDriveOutNoPlan) {
  Counted counted;
  for (int i = 0; i < 2; ++i)
    for (int key = 0; key < 8; ++key) counted.find(key);
  for (int key = 100; key < 200; ++key) EXPECT_EQ(counted.find(key), nullptr);
  for (int key = 0; key < 8; ++key) EXPECT_NE(counted.find(key), nullptr);
  EXPECT_EQ(counted.made, 8);
}

TEST(PlanCache, ARoundOfMoreKeysThanItRemembersMakesNone) {
  Counted counted;
  for (int i = 0; i < 5; ++i)
    for (int key = 0; key < 9; ++key) EXPECT_EQ(counted.find(key), nullptr);
  EXPECT_EQ(counted.made, 0);
}

TEST(PlanCache, AFullOneDropsOnePlanForANewOne) {
  Counted counted;
  for (int i = 0; i < 2; ++i)
    for (int key = 0; key < 8; ++key) counted.find(key);
  counted.find(8);
  EXPECT_NE(counted.find(8), nullptr);
  EXPECT_EQ(counted.made, 9);
  int dropped = 0;
  for (int key = 0; key < 8; ++key) dropped += counted.find(key) == nullptr ? 1 : 0;
  EXPECT_EQ(dropped, 1);
}

}  // namespace
}  // namespace backplane::cpu
