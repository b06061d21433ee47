// What a small op costs the driver, counted: submissions, and objects once all pipelines are made.
#include "../device_fixture.hpp"
#include "runtime/device.hpp"

namespace {

using backplane::vulkan::Counts;

class CountsTest : public DeviceTest {};

TEST_F(CountsTest, AHundredSmallOpsAreTwoSubmissionsAndNoObjects) {
  void* handle = nullptr;
  ASSERT_EQ(table.native(table.context, kOrdinal, stream, "Counts", &handle), BP_OK) << last_error;
  const Counts& counts = *static_cast<Counts*>(handle);
  Vector& x = new_vector(1000, 1, stream, 1);
  Vector& y = new_vector(1000, 0, stream, 2);
  uint64_t ticket = 2;
  const auto run = [&] {
    for (int op = 0; op < 100; ++op) ASSERT_EQ(add(y, y, x, stream, ++ticket), BP_OK) << last_error;
    ASSERT_EQ(flush(stream, ticket), BP_OK);
    ASSERT_EQ(wait(stream, ticket), BP_OK);
  };
  for (int round = 0; round < 3; ++round) run();
  const uint64_t submissions = counts.submissions, objects = counts.objects, commands = counts.commands;
  run();
  EXPECT_EQ(counts.commands - commands, 100u);
  EXPECT_LE(counts.submissions - submissions, 2u);
  EXPECT_EQ(counts.objects - objects, 0u);
  EXPECT_EQ(read(y, stream), std::vector<float>(1000, 400));
}

TEST_F(CountsTest, OnlyWhatDependsOnWhatWasWrittenWaits) {
  void* handle = nullptr;
  ASSERT_EQ(table.native(table.context, kOrdinal, stream, "Counts", &handle), BP_OK);
  const Counts& counts = *static_cast<Counts*>(handle);
  Vector& x = new_vector(100, 1, stream, 1);
  Vector* results[4];
  for (uint64_t i = 0; i < 4; ++i) results[i] = &new_vector(100, 0, stream, 2 + i);
  ASSERT_EQ(add(*results[0], x, x, stream, 6), BP_OK);  // behind the copies
  const uint64_t barriers = counts.barriers;
  for (uint64_t i = 1; i < 4; ++i) ASSERT_EQ(add(*results[i], x, x, stream, 6 + i), BP_OK);
  EXPECT_EQ(counts.barriers - barriers, 0u);
  ASSERT_EQ(add(x, *results[0], *results[3], stream, 10), BP_OK);
  EXPECT_EQ(counts.barriers - barriers, 1u);
  EXPECT_EQ(read(x, stream), std::vector<float>(100, 4));
}

}  // namespace
