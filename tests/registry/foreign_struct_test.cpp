// Laws of every struct that a plugin gives: it is read within its own size, larger or smaller than this minor's, and
// its flags are understood or refused.
#include "record/foreign_struct.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <mutex>

#include "host_backend.hpp"
#include "memory/process/plugin_record.hpp"
#include "null_backend.hpp"
#include "record/host_table.hpp"
#include "record/toy_record.hpp"
#include "registry/withdrawal.hpp"

namespace backplane::core::foreign_struct_test {
namespace {

using ::testing::HasSubstr;

bp_status no_kernel(const bp_frame*, const bp_value*, int32_t, bp_value*, int32_t) { return BP_OK; }

// A plugin for one registration, which is taken back with it.
class Owner {
 public:
  Owner() {
    testing::null_backend();
    record_->name = "structs";
    record_->index = kCountedPlugins;
    record_->state = PluginRecord::State::kLoaded;
  }
  ~Owner() { withdraw(record_); }
  bp_plugin_record* record() { return record_; }

 private:
  static PluginRecord* add() {
    static std::deque<PluginRecord>& kept = *new std::deque<PluginRecord>;  // the registry points to them for good
    return &kept.emplace_back();
  }
  PluginRecord* record_ = add();
};

// A struct in a page of its own, whose size may be said to be another.
struct Case {
  const char* name;
  size_t smallest;  // that any minor has written
  std::vector<char> bytes;
  size_t flags_at;    // 0: it has none
  size_t flags_size;  // bytes
  std::function<bp_status(bp_plugin_record*, const void*)> give;

  template <class Struct>
  static std::vector<char> page(const Struct& value) {
    std::vector<char> all(BP_MAX_STRUCT_SIZE + 64, char(0xee));  // what a newer minor appends
    std::memcpy(all.data(), &value, sizeof value);
    return all;
  }
  bp_status with_size(uint32_t size) {
    std::memcpy(bytes.data(), &size, sizeof size);
    Owner owner;
    return give(owner.record(), bytes.data());
  }
  bp_status with_bit(int bit) {
    std::vector<char> kept = bytes;
    bytes[flags_at + static_cast<size_t>(bit) / 8] |= static_cast<char>(1 << bit % 8);
    Owner owner;
    const bp_status status = give(owner.record(), bytes.data());
    bytes = kept;
    return status;
  }
};

std::vector<Case> cases() {
  std::vector<Case> all;
  const bp_backend_def backend = testing::host_backend("structs");
  all.push_back({"bp_backend_def", offsetof(bp_backend_def, copy) + 8, Case::page(backend),
                 offsetof(bp_backend_def, flags), 4, [](bp_plugin_record* r, const void* p) {
                   return host_table.register_backend(r, static_cast<const bp_backend_def*>(p));
                 }});
  const bp_kernel_def kernel = testing::kernel_row("bp::exp", "null", no_kernel);
  all.push_back({"bp_kernel_def", 96, Case::page(kernel), offsetof(bp_kernel_def, flags), 4,
                 [](bp_plugin_record* r, const void* p) {
                   return host_table.register_kernel(r, static_cast<const bp_kernel_def*>(p));
                 }});
  bp_key_def key{};
  key.header = BP_HEADER(bp_key_def);
  key.name = "structs";
  all.push_back(
      {"bp_key_def", 48, Case::page(key), offsetof(bp_key_def, flags), 4, [](bp_plugin_record* r, const void* p) {
         return host_table.register_key(r, static_cast<const bp_key_def*>(p));
       }});
  static ToyRecord toy("toy::structs");
  if (toy.args.empty()) toy.arg("x");
  all.push_back(
      {"bp_op_def", offsetof(bp_op_def, program), Case::page(toy.def()), offsetof(bp_op_def, flags), 8,
       [](bp_plugin_record* r, const void* p) { return host_table.register_op(r, static_cast<const bp_op_def*>(p)); }});
  return all;
}

uint32_t size_of(const Case& one) {
  uint32_t size;
  std::memcpy(&size, one.bytes.data(), sizeof size);
  return size;
}

TEST(ForeignStructs, LargerAndSmallerOnesAreRead) {
  for (Case& one : cases()) {
    const uint32_t own = size_of(one);
    EXPECT_EQ(one.with_size(own), BP_OK) << one.name << host_table.get_error();
    EXPECT_EQ(one.with_size(own + 64), BP_OK) << one.name << host_table.get_error();
    EXPECT_EQ(one.with_size(static_cast<uint32_t>(one.smallest)), BP_OK) << one.name << host_table.get_error();
  }
}

TEST(ForeignStructs, ImpossibleSizesAreRefused) {
  for (Case& one : cases()) {
    const uint32_t own = size_of(one);
    for (const uint32_t size : {0u, 8u, static_cast<uint32_t>(one.smallest) - 8, own + 4, BP_MAX_STRUCT_SIZE + 8}) {
      EXPECT_EQ(one.with_size(size), BP_ERROR_VERSION) << one.name << " of " << size;
      EXPECT_THAT(host_table.get_error(), HasSubstr("struct_size is " + std::to_string(size)));
    }
  }
}

TEST(ForeignStructs, AnUnknownFlagIsRefusedAndAnUnknownHintIgnored) {
  for (Case& one : cases()) {
    const int bits = static_cast<int>(8 * one.flags_size);
    EXPECT_EQ(one.with_bit(bits / 2 - 1), BP_ERROR_VERSION) << one.name;
    EXPECT_THAT(host_table.get_error(), HasSubstr("bit " + std::to_string(bits / 2 - 1) + " of its flags"));
    EXPECT_EQ(one.with_bit(bits - 1), BP_OK) << one.name << ": " << host_table.get_error();
  }
}

// ---- what a registration says that cannot be meant ---------------------------------------------------------------

std::string refusal(const std::function<bp_status(bp_plugin_record*)>& give) {
  Owner owner;
  return give(owner.record()) == BP_OK ? "" : host_table.get_error();
}

TEST(Registrations, RowsThatNobodyCouldMeanAreRefused) {
  const auto with = [](const std::function<void(bp_kernel_def&)>& change) {
    return refusal([&](bp_plugin_record* record) {
      bp_kernel_def row = testing::kernel_row("bp::exp", "null", no_kernel);
      change(row);
      return host_table.register_kernel(record, &row);
    });
  };
  EXPECT_EQ(with([](bp_kernel_def&) {}), "");
  EXPECT_THAT(with([](bp_kernel_def& row) { row.offset_alignment = 3; }), HasSubstr("offset_alignment is 3"));
  EXPECT_THAT(with([](bp_kernel_def& row) { row.max_elements = -1; }), HasSubstr("max_elements is -1"));
  EXPECT_THAT(with([](bp_kernel_def& row) { row.dtypes = 0; }), HasSubstr("names no dtype"));
  EXPECT_THAT(with([](bp_kernel_def& row) { row.flags = BP_KERNEL_MAY_DECLINE; }), HasSubstr("without `supports`"));
}

TEST(Registrations, OfTwoRowsForTheSameCallsTheSecondIsRefused) {
  const auto second = [](const std::function<void(bp_kernel_def&)>& change) {
    return refusal([&](bp_plugin_record* record) {
      bp_kernel_def row = testing::kernel_row("bp::exp", "null", no_kernel);
      row.dtypes = BP_DTYPE_BIT(BP_FLOAT32);
      EXPECT_EQ(host_table.register_kernel(record, &row), BP_OK) << host_table.get_error();
      change(row);
      return host_table.register_kernel(record, &row);
    });
  };
  EXPECT_THAT(second([](bp_kernel_def&) {}), HasSubstr("has registered a row for the same dtypes already"));
  EXPECT_EQ(second([](bp_kernel_def& row) { row.dtypes = BP_DTYPE_BIT(BP_FLOAT64); }), "");
  EXPECT_EQ(second([](bp_kernel_def& row) { row.priority = 1; }), "");
}

TEST(Registrations, OneBackendIsTheHostsProcessor) {
  const auto with = [](uint32_t flags) {
    return refusal([&](bp_plugin_record* record) {
      bp_backend_def backend = testing::host_backend("structs");
      backend.flags |= flags;
      return host_table.register_backend(record, &backend);
    });
  };
  EXPECT_EQ(with(0), "");
  EXPECT_THAT(with(BP_BACKEND_HOST_DEVICE), HasSubstr("and so is \"null\" of plugin \"null\""));
}

// ---- what a backend answers ----------------------------------------------------------------------------------------

// The error of the first use of a device whose table was changed.
std::string error_of_use(const char* name, const std::function<void(bp_backend_def&)>& change) {
  testing::null_backend();
  auto* record = new PluginRecord;
  record->name = name;
  record->index = kCountedPlugins;
  record->state = PluginRecord::State::kLoaded;
  bp_backend_def backend = testing::host_backend(name);
  change(backend);
  EXPECT_EQ(host_table.register_backend(record, &backend), BP_OK) << host_table.get_error();
  try {
    const int64_t shape[] = {1000};
    empty(shape, BP_FLOAT64, parse_device(name));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Backends, AnswersThatCannotBeAreErrorsWithTheBackendsName) {
  EXPECT_EQ(error_of_use("plain", [](bp_backend_def&) {}), "");
  EXPECT_THAT(error_of_use("nothing",
                           [](bp_backend_def& b) {
                             b.allocate = [](void*, int32_t, uint64_t, void** data) -> bp_status {
                               *data = nullptr;
                               return BP_OK;
                             };
                           }),
              ::testing::AllOf(HasSubstr("device nothing"), HasSubstr("no memory (NULL)")));
  EXPECT_THAT(error_of_use("silent",
                           [](bp_backend_def& b) {
                             b.allocate = [](void*, int32_t, uint64_t, void**) -> bp_status { return BP_ERROR_DEVICE; };
                           }),
              ::testing::AllOf(HasSubstr("device silent: allocate failed"), HasSubstr("status 8 without a message")));
  EXPECT_THAT(error_of_use("odd",
                           [](bp_backend_def& b) {
                             b.properties = [](void*, int32_t, bp_device_properties* out) -> bp_status {
                               out->alignment = 3;
                               return BP_OK;
                             };
                           }),
              ::testing::AllOf(HasSubstr("device odd:0"), HasSubstr("alignment 3")));
  EXPECT_THAT(error_of_use("thrower",
                           [](bp_backend_def& b) {
                             b.device_count = [](void*, int32_t*) -> bp_status { throw std::runtime_error("no bus"); };
                           }),
              ::testing::AllOf(HasSubstr("device thrower"), HasSubstr("device_count threw an exception: no bus")));
}

}  // namespace
}  // namespace backplane::core::foreign_struct_test
