// Laws of the simulated devices, through the C table alone: order, tickets, waiting between streams, deferred errors,
// and memory that the host cannot touch. For both ways of naming memory.
#include <filesystem>
#include <fstream>
#include <set>

#include "device_fixture.hpp"

namespace {

INSTANTIATE_TEST_SUITE_P(Backends, DeviceTest, ::testing::Values("sim", "simh"),
                         [](const auto& info) { return info.param; });

// The names of the registry's entries that say `primitive:`.
std::set<std::string> primitives() {
  std::set<std::string> found;
  for (const auto& file : std::filesystem::directory_iterator(std::filesystem::path(OPS_YAML).parent_path() / "ops")) {
    std::string op;
    std::ifstream entries(file.path());
    for (std::string line; std::getline(entries, line);) {
      if (line.starts_with("  - op: ")) op = "bp::" + line.substr(8, line.find('(') - 8);
      if (line.starts_with("    primitive: ")) found.insert(op);
    }
  }
  return found;
}

TEST_P(DeviceTest, TheKernelsAreThePrimitives) {
  std::set<std::string> expected = primitives(), found;
  ASSERT_GT(expected.size(), 50u);
  for (const auto& [where, row] : host->kernels())
    if (where.first == GetParam()) found.insert(where.second);
  EXPECT_EQ(found, expected);
}

TEST_P(DeviceTest, WorkOnAStreamRunsInOrder) {
  Buffer& x = new_buffer(std::vector<double>(1000, 1), stream, 1);
  for (uint64_t ticket = 2; ticket <= 12; ++ticket) ASSERT_EQ(call("bp::add", x, x, x, stream, ticket), BP_OK);
  EXPECT_EQ(read(x, stream), std::vector<double>(1000, 2048));
}

TEST_P(DeviceTest, TheSourceOfACopyIsReadWhenTheCallReturns) {
  std::vector<double> values(100000, 3);
  Buffer& x = new_buffer(values, stream, 1);
  const uint64_t bytes = values.size() * 8;
  ASSERT_EQ(backend->copy_from_host(backend->context, kOrdinal, stream, 2, x.data, 0, values.data(), bytes), BP_OK);
  values.assign(values.size(), -1);
  EXPECT_EQ(read(x, stream), std::vector<double>(100000, 3));
}

TEST_P(DeviceTest, CompletedReachesAFlushedTicketAndNeverFalls) {
  Buffer& x = new_buffer({1, 2}, stream, 1);
  uint64_t last = 0;
  for (uint64_t ticket = 2; ticket <= 200; ++ticket) {
    ASSERT_EQ(call("bp::add", x, x, x, stream, ticket), BP_OK);
    const uint64_t now = completed(stream);
    EXPECT_GE(now, last);
    EXPECT_LT(now, ticket) << "not flushed: more work may come under this ticket";
    last = now;
    if (ticket % 10 != 0) continue;
    ASSERT_EQ(backend->flush(backend->context, kOrdinal, stream, ticket), BP_OK);
    EXPECT_EQ(wait(stream, ticket), BP_OK);
    EXPECT_EQ(last = completed(stream), ticket);
    read(x, stream);  // work of no ticket takes nothing back
    EXPECT_EQ(completed(stream), ticket);
  }
}

TEST_P(DeviceTest, AStreamWaitsForATicketOfAnother) {
  bp_stream* other = new_stream();
  Buffer& x = new_buffer(std::vector<double>(200000, 1), stream, 1);
  Buffer& y = new_buffer(std::vector<double>(200000, 0), other, 1);
  for (uint64_t ticket = 2; ticket <= 9; ++ticket) ASSERT_EQ(call("bp::add", x, x, x, stream, ticket), BP_OK);
  ASSERT_EQ(backend->flush(backend->context, kOrdinal, stream, 9), BP_OK);
  ASSERT_EQ(backend->stream_wait(backend->context, kOrdinal, other, stream, 9), BP_OK);
  ASSERT_EQ(call("bp::add", y, x, x, other, 2), BP_OK);
  EXPECT_EQ(read(y, other), std::vector<double>(200000, 512));
}

TEST_P(DeviceTest, ADataErrorCarriesItsTicketAndLeavesTheDeviceUsable) {
  Buffer& x = new_buffer({7, 8}, stream, 1);
  Buffer& y = new_buffer({1, 0}, stream, 2);
  x.tensor.dtype = y.tensor.dtype = BP_INT64;  // the bits of 0.0 are those of 0
  ASSERT_EQ(call("bp::floor_divide", x, x, y, stream, 3), BP_OK) << "an error of the data is found when the work runs";
  EXPECT_EQ(wait(stream, 2), BP_OK);
  EXPECT_EQ(wait(stream, 3), BP_ERROR_DATA);
  const bp_deferred_error error = take_error(stream);
  EXPECT_EQ(error.code, BP_ERROR_DATA);
  EXPECT_EQ(error.ticket, 3u);
  EXPECT_NE(std::string(error.message).find("floor_divide"), std::string::npos) << error.message;
  EXPECT_EQ(take_error(stream).code, BP_OK) << "an error is given once";
  EXPECT_EQ(wait(stream, 3), BP_OK);
  ASSERT_EQ(call("bp::add", x, y, y, stream, 4), BP_OK);
  EXPECT_EQ(wait(stream, 4), BP_OK);
}

TEST_P(DeviceTest, AfterAFatalErrorEveryCallGivesTheFirstCauseAndFreeingWorks) {
  setenv("BACKPLANE_SIM_LOSE_AFTER", "3", 1);
  TearDown();  // a device reads the variable when it comes to life
  streams.clear();
  buffers.clear();
  host.reset();
  SetUp();
  unsetenv("BACKPLANE_SIM_LOSE_AFTER");
  Buffer& x = new_buffer({1, 2}, stream, 1);
  for (uint64_t ticket = 2; ticket <= 3; ++ticket) ASSERT_EQ(call("bp::add", x, x, x, stream, ticket), BP_OK);
  EXPECT_EQ(wait(stream, 3), BP_OK);
  ASSERT_EQ(call("bp::add", x, x, x, stream, 4), BP_OK);
  EXPECT_EQ(wait(stream, 4), BP_ERROR_DEVICE_LOST);
  const bp_deferred_error error = take_error(stream);
  EXPECT_EQ(error.code, BP_ERROR_DEVICE_LOST);
  EXPECT_EQ(error.ticket, 4u);
  double host_bytes[2];
  void* data = nullptr;
  for (const bp_status status :
       {call("bp::add", x, x, x, stream, 5), backend->allocate(backend->context, kOrdinal, 8, &data),
        backend->copy_to_host(backend->context, kOrdinal, stream, host_bytes, x.data, 0, 16)}) {
    EXPECT_EQ(status, BP_ERROR_DEVICE_LOST);
    EXPECT_NE(fake_error.find("LOSE_AFTER"), std::string::npos) << fake_error;
  }
  EXPECT_EQ(wait(stream, 5), BP_ERROR_DEVICE_LOST) << "what will not happen is not waited for";
  EXPECT_EQ(wait(new_stream(), 1), BP_ERROR_DEVICE_LOST) << "on every stream of the device";
}

TEST_P(DeviceTest, AllocationsDoNotOverlapAndComeBack) {
  bp_memory_stats before{BP_HEADER(bp_memory_stats), 0, 0, 0};
  ASSERT_EQ(backend->memory_stats(backend->context, kOrdinal, &before), BP_OK);
  std::vector<Buffer*> made;
  for (int i = 0; i < 50; ++i)
    made.push_back(&new_buffer(std::vector<double>(100, i), stream, static_cast<uint64_t>(i + 1)));
  std::set<void*> names;
  for (int i = 0; i < 50; ++i) {
    names.insert(made[static_cast<size_t>(i)]->data);
    EXPECT_EQ(read(*made[static_cast<size_t>(i)], stream), std::vector<double>(100, i));
  }
  EXPECT_EQ(names.size(), 50u);
  bp_memory_stats during = before;
  ASSERT_EQ(backend->memory_stats(backend->context, kOrdinal, &during), BP_OK);
  EXPECT_GE(during.in_use, before.in_use + 50 * 800);
  while (!buffers.empty()) {
    ASSERT_EQ(backend->deallocate(backend->context, kOrdinal, buffers.back()->data, 800), BP_OK);
    buffers.pop_back();
  }
  bp_memory_stats after = before;
  ASSERT_EQ(backend->memory_stats(backend->context, kOrdinal, &after), BP_OK);
  EXPECT_EQ(after.in_use, before.in_use);
  EXPECT_EQ(after.peak, during.in_use);
}

TEST_P(DeviceTest, MisuseIsAnErrorThatSaysWhatWasFound) {
  void* data = nullptr;
  EXPECT_EQ(backend->allocate(backend->context, 7, 8, &data), BP_ERROR_VALUE);
  EXPECT_NE(fake_error.find("no device 7"), std::string::npos) << fake_error;
  EXPECT_EQ(backend->allocate(backend->context, kOrdinal, uint64_t{1} << 50, &data), BP_ERROR_MEMORY);
  Buffer& x = new_buffer({1, 2}, stream, 1);
  double host[9];
  EXPECT_EQ(backend->copy_to_host(backend->context, kOrdinal, stream, host, x.data, 8, 72), BP_ERROR_VALUE);
  EXPECT_EQ(backend->deallocate(backend->context, kOrdinal, host, 72), BP_ERROR_VALUE);
}

TEST_P(DeviceTest, StopEndsTheThreadsWhileWorkIsRecorded) {
  Buffer& x = new_buffer(std::vector<double>(100000, 1), stream, 1);
  for (uint64_t ticket = 2; ticket <= 50; ++ticket) ASSERT_EQ(call("bp::add", x, x, x, stream, ticket), BP_OK);
  host->stop();
  streams.clear();
  buffers.clear();
}

using ProtectedMemoryDeathTest = DeviceTest;
INSTANTIATE_TEST_SUITE_P(Backends, ProtectedMemoryDeathTest, ::testing::Values("sim"));

TEST_P(ProtectedMemoryDeathTest, TheHostCannotReadIt) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Buffer& x = new_buffer({42}, stream, 1);
  EXPECT_EQ(read(x, stream), std::vector<double>{42});
  EXPECT_DEATH(printf("%f", *static_cast<volatile double*>(x.data)), "");
}

class HandleTest : public DeviceTest {};
INSTANTIATE_TEST_SUITE_P(Backends, HandleTest, ::testing::Values("simh"));

TEST_P(HandleTest, DataAreSmallIntegersAndOffsetsAreAligned) {
  bp_device_properties properties{};
  properties.header = BP_HEADER(bp_device_properties);
  ASSERT_EQ(backend->properties(backend->context, kOrdinal, &properties), BP_OK);
  EXPECT_EQ(properties.alignment, 16u);
  EXPECT_FALSE(backend->flags & BP_BACKEND_ADDRESSABLE);
  Buffer& x = new_buffer({1, 2, 3, 4}, stream, 1);
  EXPECT_LT(reinterpret_cast<uintptr_t>(x.data), 4096u);
  x.size = 2;
  x.tensor.dl.byte_offset = 16;
  EXPECT_EQ(call("bp::add", x, x, x, stream, 2), BP_OK);
  x.tensor.dl.byte_offset = 8;
  EXPECT_EQ(call("bp::add", x, x, x, stream, 3), BP_ERROR_INTERNAL);
  x.tensor.dl.byte_offset = 0;
  x.size = 4;
  EXPECT_EQ(read(x, stream), (std::vector<double>{1, 2, 6, 8}));
}

}  // namespace
