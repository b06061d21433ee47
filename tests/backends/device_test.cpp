// Laws of a backend with streams, through its C table alone: order, tickets, waiting between streams, memory, native
// handles. Built once per backend; see device_fixture.hpp.
#include "device_fixture.hpp"

namespace {

TEST_F(DeviceTest, CompletedReachesAFlushedTicketAndNeverFalls) {
  Vector& x = new_vector(1000, 1, stream, 1);
  Vector& zero = new_vector(1000, 0, stream, 2);
  uint64_t last = 0;
  for (uint64_t ticket = 3; ticket <= 400; ++ticket) {
    ASSERT_EQ(add(x, x, zero, stream, ticket), BP_OK) << last_error;
    const uint64_t now = completed(stream);
    EXPECT_GE(now, last);
    EXPECT_LT(now, ticket) << "not flushed: more work may come under this ticket";
    last = now;
    if (ticket % 50 != 0) continue;
    ASSERT_EQ(flush(stream, ticket), BP_OK);
    EXPECT_EQ(wait(stream, ticket), BP_OK);
    EXPECT_EQ(last = completed(stream), ticket);
    read(x, stream);  // work of no ticket takes nothing back
    EXPECT_EQ(completed(stream), ticket);
  }
  EXPECT_EQ(wait(stream, 120), BP_OK) << "a ticket between two flushed ones";
}

TEST_F(DeviceTest, ATicketThatRecordedNothingCompletes) {
  ASSERT_EQ(flush(stream, 5), BP_OK);
  EXPECT_EQ(wait(stream, 5), BP_OK);
  EXPECT_EQ(completed(stream), 5u);
}

TEST_F(DeviceTest, AStreamWaitsForATicketOfAnother) {
  bp_stream* other = new_stream();
  Vector& x = new_vector(200000, 1, stream, 1);
  Vector& y = new_vector(200000, 0, other, 1);
  for (uint64_t ticket = 2; ticket <= 9; ++ticket) ASSERT_EQ(add(x, x, x, stream, ticket), BP_OK);
  ASSERT_EQ(flush(stream, 9), BP_OK);
  ASSERT_EQ(table.stream_wait(table.context, kOrdinal, other, stream, 9), BP_OK) << last_error;
  ASSERT_EQ(add(y, x, x, other, 2), BP_OK);
  EXPECT_EQ(read(y, other), std::vector<float>(200000, 512));
}

TEST_F(DeviceTest, StreamsThatWaitForEachOtherInTurnGoOn) {
  bp_stream* other = new_stream();
  Vector& x = new_vector(100, 1, stream, 1);
  ASSERT_EQ(flush(stream, 1), BP_OK);
  bp_stream* on[] = {other, stream};
  uint64_t tickets[] = {0, 1};  // of other, stream
  for (int turn = 0; turn < 20; ++turn) {
    const int self = turn % 2, peer = 1 - self;
    ASSERT_EQ(table.stream_wait(table.context, kOrdinal, on[self], on[peer], tickets[peer]), BP_OK);
    ASSERT_EQ(add(x, x, x, on[self], ++tickets[self]), BP_OK);
    ASSERT_EQ(flush(on[self], tickets[self]), BP_OK);
  }
  EXPECT_EQ(read(x, stream), std::vector<float>(100, 1 << 20));
}

TEST_F(DeviceTest, CopiesTakeByteOffsetsOfAnyKind) {
  Vector& x = new_vector(4, 0, stream, 1);
  Vector& y = new_vector(4, 0, stream, 2);
  const char text[] = "abcdef";
  ASSERT_EQ(table.copy_from_host(table.context, kOrdinal, stream, 3, x.data, 3, text, 6), BP_OK) << last_error;
  ASSERT_EQ(table.copy(table.context, kOrdinal, stream, 4, y.data, 1, x.data, 4, 5), BP_OK) << last_error;
  char found[5] = {};
  ASSERT_EQ(table.copy_to_host(table.context, kOrdinal, stream, found, y.data, 2, 4), BP_OK) << last_error;
  EXPECT_STREQ(found, "cdef");
}

TEST_F(DeviceTest, MemoryIsCountedAndComesBack) {
  bp_memory_stats before{};
  before.header = BP_HEADER(bp_memory_stats);
  bp_memory_stats held = before, after = before;
  ASSERT_EQ(table.memory_stats(table.context, kOrdinal, &before), BP_OK);
  void* data = nullptr;
  ASSERT_EQ(table.allocate(table.context, kOrdinal, 1 << 20, &data), BP_OK);
  ASSERT_EQ(table.memory_stats(table.context, kOrdinal, &held), BP_OK);
  ASSERT_EQ(table.deallocate(table.context, kOrdinal, data, 1 << 20), BP_OK);
  ASSERT_EQ(table.memory_stats(table.context, kOrdinal, &after), BP_OK);
  EXPECT_GE(held.in_use, before.in_use + (1 << 20));
  EXPECT_GE(held.peak, held.in_use);
  EXPECT_EQ(after.in_use, before.in_use);
}

TEST_F(DeviceTest, TooMuchMemoryIsAnErrorOfMemory) {
  void* data = nullptr;
  EXPECT_EQ(table.allocate(table.context, kOrdinal, 1ull << 50, &data), BP_ERROR_MEMORY) << last_error;
}

TEST_F(DeviceTest, AnUnknownNativeHandleIsRefusedWithTheKnownOnes) {
  void* handle = nullptr;
  EXPECT_EQ(table.native(table.context, kOrdinal, stream, "teapot", &handle), BP_ERROR_VALUE);
  EXPECT_NE(last_error.find("expected"), std::string::npos) << last_error;
}

TEST_F(DeviceTest, NothingIsDeferredWhereNothingFailed) {
  bp_deferred_error error{};
  error.header = BP_HEADER(bp_deferred_error);
  EXPECT_EQ(table.deferred_error(table.context, kOrdinal, stream, &error), BP_OK);
  EXPECT_EQ(error.code, BP_OK);
}

}  // namespace
