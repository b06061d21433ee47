// Laws of a backend with streams, through its C table alone: order, tickets, waiting between streams, memory, native
// handles. Built once per backend, which BACKPLANE_DEVICE_PLUGIN and BACKPLANE_DEVICE_BACKEND name; skipped by name
// where it has no device.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "backplane/abi/plugin.h"

namespace {

constexpr int32_t kOrdinal = 0;
std::string last_error;

// The least host that a plugin can run under; opened once, since a real driver is slow to start.
struct Host {
  Host() {
    void* library = dlopen(BACKPLANE_DEVICE_PLUGIN, RTLD_NOW | RTLD_LOCAL);
    if (!library) throw std::runtime_error(dlerror());
    const auto query = reinterpret_cast<bp_plugin_query_fn>(dlsym(library, BP_PLUGIN_QUERY_SYMBOL));
    bp_plugin plugin{};
    plugin.header.struct_size = sizeof(plugin);
    if (!query || query(BP_ABI_MAJOR, BP_ABI_MINOR, &plugin) != BP_OK) throw std::runtime_error("query failed");
    table.header = BP_HEADER(bp_host);
    table.set_error = [](bp_status, const char* message) { last_error = message; };
    table.register_backend = [](bp_plugin_record* record, const bp_backend_def* def) -> bp_status {
      return reinterpret_cast<Host*>(record)->backend = *def, BP_OK;
    };
    table.register_kernel = [](bp_plugin_record* record, const bp_kernel_def* def) -> bp_status {
      return reinterpret_cast<Host*>(record)->kernels[def->op] = *def, BP_OK;
    };
    if (plugin.register_all(plugin.context, &table, reinterpret_cast<bp_plugin_record*>(this)) != BP_OK)
      throw std::runtime_error(last_error);
    backend.device_count(backend.context, &devices);
  }
  static Host& instance() {
    static Host* host = new Host;
    return *host;
  }
  bp_host table{};
  bp_backend_def backend{};
  std::map<std::string, bp_kernel_def> kernels;
  int32_t devices = 0;
};

// A float32 vector in device memory.
struct Vector {
  void* data = nullptr;
  int64_t size = 0;
  int64_t stride = 1;
  bp_tensor tensor{};
};

class DeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (host.devices == 0) GTEST_SKIP() << "device '" << BACKPLANE_DEVICE_BACKEND << "': " << last_error;
    stream = new_stream();
  }
  void TearDown() override {
    for (bp_stream* s : streams) table.stream_destroy(table.context, kOrdinal, s);
    for (auto& v : vectors)
      EXPECT_EQ(table.deallocate(table.context, kOrdinal, v->data, static_cast<uint64_t>(v->size) * 4), BP_OK);
  }
  bp_stream* new_stream() {
    bp_stream* made = nullptr;
    EXPECT_EQ(table.stream_create(table.context, kOrdinal, &made), BP_OK) << last_error;
    streams.push_back(made);
    return made;
  }
  Vector& new_vector(int64_t size, float value, bp_stream* on, uint64_t ticket) {
    auto made = std::make_unique<Vector>();
    made->size = size;
    const std::vector<float> values(static_cast<size_t>(size), value);
    EXPECT_EQ(table.allocate(table.context, kOrdinal, values.size() * 4, &made->data), BP_OK) << last_error;
    EXPECT_EQ(
        table.copy_from_host(table.context, kOrdinal, on, ticket, made->data, 0, values.data(), values.size() * 4),
        BP_OK);
    made->tensor.dl = {made->data, {kDLExtDev, kOrdinal}, 1, {kDLFloat, 32, 1}, &made->size, &made->stride, 0};
    made->tensor.dtype = BP_FLOAT32;
    made->tensor.flags = BP_TENSOR_CONTIGUOUS;
    made->tensor.nbytes = values.size() * 4;
    vectors.push_back(std::move(made));
    return *vectors.back();
  }
  std::vector<float> read(const Vector& v, bp_stream* on) {
    std::vector<float> values(static_cast<size_t>(v.size));
    EXPECT_EQ(table.copy_to_host(table.context, kOrdinal, on, values.data(), v.data, 0, values.size() * 4), BP_OK)
        << last_error;
    return values;
  }
  bp_status add(Vector& out, Vector& x, Vector& y, bp_stream* on, uint64_t ticket) {
    const bp_kernel_def& row = host.kernels.at("bp::add");
    const bp_op_info info{BP_HEADER(bp_op_info), "bp::add", 0, 1, nullptr};
    bp_frame frame{};
    frame.header = BP_HEADER(bp_frame);
    frame.host = &host.table;
    frame.op = &info;
    frame.context = row.context;
    frame.stream = on;
    frame.ordinal = kOrdinal;
    frame.ticket = ticket;
    frame.compute = BP_FLOAT32;
    bp_value args[2] = {}, outs[1] = {};
    args[0].tag = args[1].tag = outs[0].tag = BP_TAG_TENSOR;
    outs[0].flags = BP_VALUE_GIVEN;
    args[0].u.t = &x.tensor;
    args[1].u.t = &y.tensor;
    outs[0].u.t = &out.tensor;
    return row.fn(&frame, args, 2, outs, 1);
  }
  bp_status flush(bp_stream* on, uint64_t ticket) { return table.flush(table.context, kOrdinal, on, ticket); }
  bp_status wait(bp_stream* on, uint64_t ticket) { return table.wait(table.context, kOrdinal, on, ticket); }
  uint64_t completed(bp_stream* on) {
    uint64_t ticket = 0;
    EXPECT_EQ(table.completed(table.context, kOrdinal, on, &ticket), BP_OK);
    return ticket;
  }

  Host& host = Host::instance();
  const bp_backend_def& table = host.backend;
  bp_stream* stream = nullptr;
  std::vector<bp_stream*> streams;
  std::vector<std::unique_ptr<Vector>> vectors;
};

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
  bp_memory_stats before{.header = BP_HEADER(bp_memory_stats)}, held = before, after = before;
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
  EXPECT_NE(last_error.find("there are"), std::string::npos) << last_error;
}

TEST_F(DeviceTest, NothingIsDeferredWhereNothingFailed) {
  bp_deferred_error error{};
  error.header = BP_HEADER(bp_deferred_error);
  EXPECT_EQ(table.deferred_error(table.context, kOrdinal, stream, &error), BP_OK);
  EXPECT_EQ(error.code, BP_OK);
}

}  // namespace
