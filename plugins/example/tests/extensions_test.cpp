// The simulated devices' extensions, asked for and called through their C tables as a host does.
#include <atomic>
#include <cstring>
#include <thread>

#include "backplane/abi/device_extensions.h"
#include "device_fixture.hpp"

namespace {

class ExtensionTest : public DeviceTest {
 protected:
  template <class Struct>
  const Struct& extension(const char* name) {
    const auto* found = static_cast<const Struct*>(backend->extension(backend->context, name, 1));
    EXPECT_NE(found, nullptr) << name;
    EXPECT_GE(found->header.struct_size, sizeof(Struct)) << name;
    return *found;
  }
  bp_status flush(bp_stream* on, uint64_t ticket) { return backend->flush(backend->context, kOrdinal, on, ticket); }
};
INSTANTIATE_TEST_SUITE_P(Backends, ExtensionTest, ::testing::Values("sim", "simh"));

TEST_P(ExtensionTest, NamesAndVersionsThatThereAreNotGiveNull) {
  EXPECT_EQ(backend->extension(backend->context, "no such thing", 1), nullptr);
  EXPECT_EQ(backend->extension(backend->context, BP_EXTENSION_TIME, 2), nullptr);
  EXPECT_EQ(backend->extension(backend->context, BP_EXTENSION_MEMORY, 2), nullptr);
}

TEST_P(ExtensionTest, StampsGrowAlongAStream) {
  const auto& time = extension<bp_extension_time>(BP_EXTENSION_TIME);
  bp_time_stamp* stamps[2] = {};
  uint64_t at[2] = {};
  for (int i = 0; i < 2; ++i)
    ASSERT_EQ(time.stamp(backend->context, kOrdinal, stream, static_cast<uint64_t>(i + 1), &stamps[i]), BP_OK);
  ASSERT_EQ(wait(stream, 2), BP_OK);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(time.read(backend->context, kOrdinal, stamps[i], &at[i]), BP_OK);
    time.drop(backend->context, kOrdinal, stamps[i]);
  }
  EXPECT_GT(at[0], 0u);
  EXPECT_LE(at[0], at[1]);
}

TEST_P(ExtensionTest, ACompletionRunsOnceAlsoOnADeviceThatIsLost) {
  const auto& callbacks = extension<bp_extension_callbacks>(BP_EXTENSION_CALLBACKS);
  std::atomic<int> runs{0};
  const auto count = [](void* argument) { ++*static_cast<std::atomic<int>*>(argument); };
  ASSERT_EQ(callbacks.notify(backend->context, kOrdinal, stream, 1, count, &runs), BP_OK);
  ASSERT_EQ(wait(stream, 1), BP_OK);
  EXPECT_EQ(runs, 1);
  setenv("BACKPLANE_SIM_LOSE_AFTER", "0", 1);
  streams.clear();
  host.reset();
  SetUp();
  unsetenv("BACKPLANE_SIM_LOSE_AFTER");
  new_buffer({1}, stream, 1);
  EXPECT_EQ(wait(stream, 1), BP_ERROR_DEVICE_LOST);
  const auto& after = extension<bp_extension_callbacks>(BP_EXTENSION_CALLBACKS);
  ASSERT_EQ(after.notify(backend->context, kOrdinal, stream, 2, count, &runs), BP_OK);
  wait(stream, 2);
  EXPECT_EQ(runs, 2);
}

TEST_P(ExtensionTest, WhatIsCapturedRunsAtEachReplayAndNotBefore) {
  const auto& capture = extension<bp_extension_capture>(BP_EXTENSION_CAPTURE);
  Buffer& x = new_buffer({1, 2}, stream, 1);
  bp_stream* own = new_stream();
  bp_recording* recording = nullptr;
  ASSERT_EQ(capture.begin(backend->context, kOrdinal, own), BP_OK);
  ASSERT_EQ(call("bp::add", x, x, x, own, 1), BP_OK);
  double host_bytes[2];
  EXPECT_NE(backend->copy_to_host(backend->context, kOrdinal, own, host_bytes, x.data, 0, 16), BP_OK);
  ASSERT_EQ(capture.end(backend->context, kOrdinal, own, &recording), BP_OK);
  EXPECT_EQ(read(x, stream), (std::vector<double>{1, 2}));
  for (uint64_t ticket = 2; ticket <= 4; ++ticket)
    ASSERT_EQ(capture.replay(backend->context, kOrdinal, recording, stream, ticket), BP_OK);
  EXPECT_EQ(read(x, stream), (std::vector<double>{8, 16}));
  capture.destroy(backend->context, kOrdinal, recording);
  ASSERT_EQ(capture.begin(backend->context, kOrdinal, own), BP_OK);
  ASSERT_EQ(call("bp::add", x, x, x, own, 2), BP_OK);
  EXPECT_EQ(capture.end(backend->context, kOrdinal, own, nullptr), BP_OK) << "given up";
  EXPECT_EQ(read(x, stream), (std::vector<double>{8, 16}));
}

TEST_P(ExtensionTest, OnlyPinnedMemoryIsReadAndWrittenLater) {
  const auto& pinned = extension<bp_extension_pinned>(BP_EXTENSION_PINNED);
  void* memory = nullptr;
  ASSERT_EQ(pinned.allocate(backend->context, 16, &memory), BP_OK);
  const double numbers[] = {3, 4};
  std::memcpy(memory, numbers, sizeof numbers);
  Buffer& x = new_buffer({0, 0}, stream, 1);
  ASSERT_EQ(pinned.copy_from_host(backend->context, kOrdinal, stream, 2, x.data, 0, memory, 16), BP_OK);
  ASSERT_EQ(call("bp::add", x, x, x, stream, 3), BP_OK);
  ASSERT_EQ(pinned.copy_to_host(backend->context, kOrdinal, stream, 4, memory, x.data, 0, 16), BP_OK);
  ASSERT_EQ(wait(stream, 4), BP_OK);
  EXPECT_EQ(static_cast<double*>(memory)[1], 8);
  EXPECT_NE(pinned.copy_from_host(backend->context, kOrdinal, stream, 5, x.data, 0, numbers, 16), BP_OK);
  EXPECT_NE(fake_error.find("not pinned"), std::string::npos) << fake_error;
  EXPECT_EQ(pinned.deallocate(backend->context, memory, 16), BP_OK);
  EXPECT_NE(pinned.deallocate(backend->context, memory, 16), BP_OK);
}

TEST_P(ExtensionTest, AResetDeviceIsAsNew) {
  const auto& reset = extension<bp_extension_reset>(BP_EXTENSION_RESET);
  new_buffer(std::vector<double>(1000, 1), stream, 1);
  buffers.clear();
  streams.clear();
  ASSERT_EQ(reset.reset(backend->context, kOrdinal), BP_OK);
  bp_memory_stats stats{};
  stats.header = BP_HEADER(bp_memory_stats);
  ASSERT_EQ(backend->memory_stats(backend->context, kOrdinal, &stats), BP_OK);
  EXPECT_EQ(stats.in_use, 0u);
  stream = new_stream();
  EXPECT_EQ(read(new_buffer({5}, stream, 1), stream), std::vector<double>{5});
}

}  // namespace
