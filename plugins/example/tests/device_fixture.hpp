// A device of the simulator with a stream, driven through the C table as the host drives it.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <vector>

#include "fake_host.hpp"

// A float64 tensor of one dimension in device memory.
struct Buffer {
  void* data = nullptr;
  int64_t size = 0;
  int64_t stride = 1;
  bp_tensor tensor{};
};

class DeviceTest : public ::testing::TestWithParam<const char*> {
 protected:
  static constexpr int32_t kOrdinal = 1;

  void SetUp() override {
    host = std::make_unique<FakeHost>(SIMULATOR_PATH);
    backend = &host->backend(GetParam());
    stream = new_stream();
  }
  void TearDown() override {
    for (bp_stream* s : streams) backend->stream_destroy(backend->context, kOrdinal, s);
    for (auto& buffer : buffers) EXPECT_EQ(backend->deallocate(backend->context, kOrdinal, buffer->data, 8), BP_OK);
  }

  bp_stream* new_stream() {
    bp_stream* made = nullptr;
    EXPECT_EQ(backend->stream_create(backend->context, kOrdinal, &made), BP_OK);
    streams.push_back(made);
    return made;
  }

  Buffer& new_buffer(const std::vector<double>& values, bp_stream* on, uint64_t ticket) {
    auto made = std::make_unique<Buffer>();
    made->size = static_cast<int64_t>(values.size());
    const uint64_t bytes = values.size() * sizeof(double);
    EXPECT_EQ(backend->allocate(backend->context, kOrdinal, bytes, &made->data), BP_OK);
    EXPECT_EQ(backend->copy_from_host(backend->context, kOrdinal, on, ticket, made->data, 0, values.data(), bytes),
              BP_OK);
    made->tensor.dl = {made->data, {kDLExtDev, kOrdinal}, 1, {kDLFloat, 64, 1}, &made->size, &made->stride, 0};
    made->tensor.dtype = BP_FLOAT64;
    made->tensor.ordinal = kOrdinal;
    buffers.push_back(std::move(made));
    return *buffers.back();
  }

  std::vector<double> read(const Buffer& buffer, bp_stream* on) {
    std::vector<double> values(static_cast<size_t>(buffer.size));
    EXPECT_EQ(backend->copy_to_host(backend->context, kOrdinal, on, values.data(), buffer.data, 0, values.size() * 8),
              BP_OK)
        << fake_error;
    return values;
  }

  // out = op(x, y) over float64 vectors of one length.
  bp_status call(const char* op, Buffer& out, Buffer& x, Buffer& y, bp_stream* on, uint64_t ticket) {
    const bp_kernel_def& row = host->kernel(GetParam(), op);
    const int64_t strides[] = {8, 8, 8};
    const bp_loop loop{BP_HEADER(bp_loop), 1, 3, out.size, &out.size, strides, nullptr, 0, 0, 0, 0};
    const bp_op_info info{BP_HEADER(bp_op_info), op, 0, 1, nullptr};
    bp_frame frame{};
    frame.header = BP_HEADER(bp_frame);
    frame.host = host->table();
    frame.op = &info;
    frame.context = row.context;
    frame.stream = on;
    frame.ordinal = kOrdinal;
    frame.ticket = ticket;
    frame.compute = x.tensor.dtype;
    frame.loop = &loop;
    bp_value args[2] = {}, outs[1] = {};
    args[0].tag = args[1].tag = outs[0].tag = BP_TAG_TENSOR;
    outs[0].flags = BP_VALUE_GIVEN;
    args[0].u.t = &x.tensor;
    args[1].u.t = &y.tensor;
    outs[0].u.t = &out.tensor;
    return row.fn(&frame, args, 2, outs, 1);
  }

  bp_status wait(bp_stream* on, uint64_t ticket) { return backend->wait(backend->context, kOrdinal, on, ticket); }
  bp_deferred_error take_error(bp_stream* on) {
    bp_deferred_error error{};
    error.header = BP_HEADER(bp_deferred_error);
    EXPECT_EQ(backend->deferred_error(backend->context, kOrdinal, on, &error), BP_OK);
    return error;
  }
  uint64_t completed(bp_stream* on) {
    uint64_t ticket = 0;
    EXPECT_EQ(backend->completed(backend->context, kOrdinal, on, &ticket), BP_OK);
    return ticket;
  }

  std::unique_ptr<FakeHost> host;
  const bp_backend_def* backend = nullptr;
  bp_stream* stream = nullptr;
  std::vector<bp_stream*> streams;
  std::vector<std::unique_ptr<Buffer>> buffers;
};
