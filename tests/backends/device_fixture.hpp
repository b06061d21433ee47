// What the laws of a device table stand on: the least host that a plugin can run under, and vectors on a device. The
// plugin and its backend are those that BACKPLANE_DEVICE_PLUGIN and BACKPLANE_DEVICE_BACKEND name; tests are skipped by
// name where it has no device.
#pragma once

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

}  // namespace
