// Every struct that crosses and may grow is in a table of tests, by its writer: structs that the plugin gives,
// elements of its arrays, structs that it fills for the host, and structs of the host. A struct without a test is found
// here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <map>
#include <set>
#include <string>

#include "backplane/device.hpp"
#include "host_backend.hpp"
#include "memory/devices/device.hpp"
#include "memory/process/plugin_record.hpp"
#include "null_backend.hpp"
#include "record/host_table.hpp"
#include "record/toy_record.hpp"
#include "registry/withdrawal.hpp"

namespace backplane::core {
namespace {

using ::testing::HasSubstr;

// Who tries a struct of an older or newer minor, of an impossible size, with a slot missing.
const std::map<std::string, const char*> kTried = {
    {"bp_backend_def", "tests/registry/foreign_struct_test.cpp"},
    {"bp_kernel_def", "tests/registry/foreign_struct_test.cpp"},
    {"bp_key_def", "tests/registry/foreign_struct_test.cpp"},
    {"bp_op_def", "tests/registry/foreign_struct_test.cpp"},
    {"bp_plugin", "tests/loader/load_test.cpp"},
    {"bp_arg_def", "CrossingStructs.InArraysAreReadByTheirStride"},
    {"bp_result_def", "CrossingStructs.InArraysAreReadByTheirStride"},
    {"bp_result_dtype", "CrossingStructs.InArraysAreReadByTheirStride"},
    {"bp_formula", "CrossingStructs.InArraysAreReadByTheirStride"},
    {"bp_shape_rule", "CrossingStructs.InArraysAreReadByTheirStride"},
    {"bp_device_properties", "CrossingStructs.ThatABackendFillsAreOfEitherMinor"},
    {"bp_memory_stats", "CrossingStructs.ThatABackendFillsAreOfEitherMinor"},
    {"bp_deferred_error", "tests/memory/stream_test.cpp"},
    {"bp_executable_info", "tests/graph/region_test.cpp"},
    // Of the host, whose earlier ones plugins of today meet in tests/abi/older_host_test.cpp, and whose later ones
    // released plugins meet in tests/abi/released_test.cpp.
    {"bp_host", "tests/abi"},
    {"bp_frame", "tests/abi"},
    {"bp_loop", "tests/abi"},
    {"bp_op_info", "tests/abi"},
    {"bp_tensor", "tests/abi"},
    {"bp_formula_env", "tests/abi"},
    {"bp_extension_keys", "tests/registry/plan_test.cpp"},
    {"bp_graph", "tests/graph/region_test.cpp"},
    {"bp_graph_node", "tests/graph/region_test.cpp"},
    {"bp_graph_value", "tests/graph/region_test.cpp"},
};

TEST(CrossingStructs, AreAllTried) {
  std::set<std::string> tried, there;
  for (const auto& [name, where] : kTried) tried.insert(name);
#define STRUCT(name, kind) \
  if (std::string(#kind) == "OPEN" && !std::string(#name).starts_with("bp_extension_")) there.insert(#name);
#define MEMBER(...)
#include "abi/layout_structs.h"
#undef STRUCT
#undef MEMBER
  there.insert("bp_extension_keys");  // the others are a backend's: tests/memory/extensions_test.cpp
  EXPECT_EQ(tried, there);
}

// ---- elements of arrays ----

// Elements of a later minor: `more` bytes that this one does not know follow each.
template <class T>
std::vector<char> widened(const std::vector<T>& items, size_t more) {
  std::vector<char> bytes(items.size() * (sizeof(T) + more), char(0xee));
  for (size_t i = 0; i < items.size(); ++i) std::memcpy(bytes.data() + i * (sizeof(T) + more), &items[i], sizeof(T));
  return bytes;
}

TEST(CrossingStructs, InArraysAreReadByTheirStride) {
  ToyRecord toy("toy::crossing");
  toy.tensors({"x", "y"});
  const uint32_t x = toy.node(BP_NODE_ARG, {}, 0), y = toy.node(BP_NODE_ARG, {}, 1);
  toy.formula(BP_RULE_DECOMPOSE, {}, {toy.call("toy::crossing_part", {x, y})}, 0, "crossing_part(x, y)");
  bp_op_def plain = toy.def();
  const std::string expected = copy_record(plain)->args[1].name;
  for (const size_t more : {size_t{8}, size_t{64}}) {
    bp_op_def def = toy.def();
    std::deque<std::vector<char>> kept;
    const auto widen = [&](bp_array& array, const auto& items) {
      array.data = kept.emplace_back(widened(items, more)).data();
      array.stride += static_cast<uint32_t>(more);
    };
    widen(def.args, toy.args);
    widen(def.results, toy.results);
    widen(def.shapes, toy.shapes);
    widen(def.dtypes, toy.dtypes);
    widen(def.formulas, toy.formulas);
    const auto read = copy_record(def);
    EXPECT_EQ(read->args[1].name, expected);
    EXPECT_STREQ(read->results[0].name, "out");
    EXPECT_STREQ(read->shapes[0].name, "broadcast");
    EXPECT_EQ(read->dtypes[0].kind, BP_RESULT_DTYPE_COMPUTE);
    EXPECT_STREQ(read->formulas[0].text, "crossing_part(x, y)");
  }
  for (bp_array bp_op_def::*array :
       {&bp_op_def::args, &bp_op_def::results, &bp_op_def::shapes, &bp_op_def::dtypes, &bp_op_def::formulas})
    for (const uint32_t stride : {0u, 4u, (plain.*array).stride + 2, BP_MAX_STRUCT_SIZE + 4u}) {
      bp_op_def def = toy.def();
      (def.*array).stride = stride;
      EXPECT_THAT(error_of([&] { copy_record(def); }), HasSubstr("a stride of " + std::to_string(stride)));
    }
}

// ---- what a plugin gives, with a slot that is empty ----

PluginRecord& plugin_of(const std::string& name) {
  static std::deque<PluginRecord>& kept = *new std::deque<PluginRecord>;  // the registry points to them for good
  testing::null_backend();
  PluginRecord& record = kept.emplace_back();
  record.name = name;
  record.index = kCountedPlugins;
  record.state = PluginRecord::State::kLoaded;
  return record;
}

bp_status no_kernel(const bp_frame*, const bp_value*, int32_t, bp_value*, int32_t) { return BP_OK; }

struct Given {
  const char* name;
  std::vector<char> bytes;
  std::vector<size_t> slots;  // of 8 bytes, which must be filled
  bp_status (*give)(bp_plugin_record*, const void*);
};

template <class T>
std::vector<char> bytes_of(const T& given) {
  std::vector<char> bytes(sizeof given);
  std::memcpy(bytes.data(), &given, sizeof given);
  return bytes;
}

std::vector<Given> given() {
  const auto backend = [](bp_plugin_record* record, const void* def) {
    return host_table.register_backend(record, static_cast<const bp_backend_def*>(def));
  };
  bp_backend_def queued = testing::host_backend("slots");
  queued.flags = 0;
  queued.stream_create = [](void*, int32_t, bp_stream**) -> bp_status { return BP_ERROR_DEVICE; };
  queued.stream_destroy = [](void*, int32_t, bp_stream*) {};
  queued.flush = queued.wait = [](void*, int32_t, bp_stream*, uint64_t) -> bp_status { return BP_OK; };
  queued.completed = [](void*, int32_t, bp_stream*, uint64_t*) -> bp_status { return BP_OK; };
  queued.stream_wait = [](void*, int32_t, bp_stream*, bp_stream*, uint64_t) -> bp_status { return BP_OK; };
  queued.deferred_error = [](void*, int32_t, bp_stream*, bp_deferred_error*) -> bp_status { return BP_OK; };
  bp_key_def key{};
  key.header = BP_HEADER(bp_key_def);
  key.name = "slots";
  static ToyRecord toy("toy::slots");
  if (toy.args.empty()) toy.arg("x");
#define AT(type, member) offsetof(type, member)
  return {
      {"a backend",
       bytes_of(testing::host_backend("slots")),
       {AT(bp_backend_def, name), AT(bp_backend_def, device_count), AT(bp_backend_def, properties),
        AT(bp_backend_def, allocate), AT(bp_backend_def, deallocate), AT(bp_backend_def, copy_from_host),
        AT(bp_backend_def, copy_to_host), AT(bp_backend_def, copy)},
       backend},
      {"a backend with streams",
       bytes_of(queued),
       {AT(bp_backend_def, stream_create), AT(bp_backend_def, stream_destroy), AT(bp_backend_def, flush),
        AT(bp_backend_def, completed), AT(bp_backend_def, wait), AT(bp_backend_def, stream_wait),
        AT(bp_backend_def, deferred_error)},
       backend},
      {"a row",
       bytes_of(testing::kernel_row("bp::exp", "null", no_kernel)),
       {AT(bp_kernel_def, op), AT(bp_kernel_def, backend), AT(bp_kernel_def, fn), AT(bp_kernel_def, dtypes)},
       [](bp_plugin_record* record, const void* def) {
         return host_table.register_kernel(record, static_cast<const bp_kernel_def*>(def));
       }},
      {"a key",
       bytes_of(key),
       {AT(bp_key_def, name)},
       [](bp_plugin_record* record, const void* def) {
         return host_table.register_key(record, static_cast<const bp_key_def*>(def));
       }},
      {"an op",
       bytes_of(toy.def()),
       {AT(bp_op_def, name)},
       [](bp_plugin_record* record, const void* def) {
         return host_table.register_op(record, static_cast<const bp_op_def*>(def));
       }},
  };
#undef AT
}

// The text of the refusal; "" if it is taken.
std::string refusal(const Given& one, const std::vector<char>& bytes) {
  PluginRecord& record = plugin_of("slots");
  const bp_status status = one.give(&record, bytes.data());
  const std::string said = status == BP_OK ? "" : host_table.get_error();
  EXPECT_TRUE(status == BP_OK || !said.empty()) << one.name << ": refused without a word";
  withdraw(&record);
  return said;
}

TEST(CrossingStructs, WithASlotMissingAreRefused) {
  for (const Given& one : given()) {
    EXPECT_EQ(refusal(one, one.bytes), "") << one.name;
    for (const size_t slot : one.slots) {
      std::vector<char> bytes = one.bytes;
      std::memset(bytes.data() + slot, 0, 8);
      EXPECT_NE(refusal(one, bytes), "") << one.name << " without what stands at " << slot;
    }
  }
}

// A list of all would leave the author to look which.
TEST(CrossingStructs, OfABackendNameTheSlotThatIsMissing) {
  PluginRecord& record = plugin_of("slots");
  const auto said = [&](const bp_backend_def& def) {
    return host_table.register_backend(&record, &def) == BP_OK ? "" : std::string(host_table.get_error());
  };
  bp_backend_def def = testing::host_backend("slots");
  def.copy = nullptr;
  EXPECT_EQ(said(def), "register_backend: \"slots\" leaves copy empty, which every backend must fill");
  def = testing::host_backend("slots");
  def.flags = 0;
  EXPECT_EQ(said(def),
            "register_backend: \"slots\" leaves stream_create empty, which a backend that is not "
            "BP_BACKEND_SYNCHRONOUS must fill");
  def.flags = BP_BACKEND_HOST_MEMORY | BP_BACKEND_SYNCHRONOUS;
  EXPECT_NE(said(def).find("needs BP_BACKEND_ADDRESSABLE"), std::string::npos);
}

TEST(CrossingStructs, OfZerosAreRefused) {
  for (const Given& one : given()) {
    std::vector<char> bytes = one.bytes;
    std::fill(bytes.begin() + sizeof(bp_header), bytes.end(), char(0));
    EXPECT_NE(refusal(one, bytes), "") << one.name << " that says its size and nothing else";
    std::fill(bytes.begin(), bytes.end(), char(0));
    EXPECT_NE(refusal(one, bytes), "") << one.name << " of zeros";
  }
}

// ---- what a plugin fills ----

// A backend of the first minor writes its fields; a backend of a later minor does not write beyond the size.
TEST(CrossingStructs, ThatABackendFillsAreOfEitherMinor) {
  bp_backend_def def = testing::host_backend("filler");
  def.properties = [](void*, int32_t, bp_device_properties* out) -> bp_status {
    EXPECT_EQ(out->header.struct_size, sizeof *out);
    EXPECT_EQ(out->dl_device_type, kDLExtDev) << "what an older backend leaves";
    std::memcpy(out->name, "older", 6);
    out->total_memory = 1 << 20;
    out->header.struct_size = offsetof(bp_device_properties, alignment);
    return BP_OK;
  };
  def.memory_stats = [](void*, int32_t, bp_memory_stats* out) -> bp_status {
    EXPECT_EQ(out->header.struct_size, sizeof *out);
    out->in_use = 7;
    out->header.struct_size = offsetof(bp_memory_stats, peak);
    return BP_OK;
  };
  PluginRecord& record = plugin_of("filler");
  ASSERT_EQ(host_table.register_backend(&record, &def), BP_OK) << host_table.get_error();
  const bp_device id = parse_device("filler");
  const Device& device = device_at(id);
  EXPECT_STREQ(device.properties.name, "older");
  EXPECT_EQ(device.properties.alignment, 1u);
  EXPECT_EQ(device.properties.lacks & BP_MASK_ANY, 0u);
  const MemoryStats stats = memory_stats(id);
  EXPECT_EQ(stats.allocated, 7u);
  EXPECT_EQ(stats.peak, 0u);
  EXPECT_FALSE(stats.limit.has_value());
  withdraw(&record);
}

}  // namespace
}  // namespace backplane::core
