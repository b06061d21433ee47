// A block that a kernel was lent goes back to the device that gave it, and to no other: not to one that was lost, reset
// or registered anew meanwhile, whose addresses are others' by now.
#include "checked/retired_blocks.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "host_backend.hpp"
#include "null_backend.hpp"
#include "record/host_table.hpp"

namespace backplane::testing {
namespace {

std::set<void*> given_back;
char memory[8];

core::Device& device_of_the_test() {
  static core::Device& device = []() -> core::Device& {
    null_backend();
    auto* record = new bp_plugin_record;
    record->name = "lender";
    record->index = 2;
    bp_backend_def backend = host_backend("lender");
    backend.deallocate = [](void*, int32_t, void* data, uint64_t) -> bp_status {
      given_back.insert(data);
      return BP_OK;
    };
    EXPECT_EQ(core::host_table.register_backend(record, &backend), BP_OK) << core::host_table.get_error();
    return core::device_at(parse_device("lender"));
  }();
  return device;
}

core::RetiredBlock block_at(void* data) { return core::lent_block(device_of_the_test(), data, 1, false); }

struct Change {
  const char* name;
  std::function<void(core::Device&)> make, undo;
};
const Change kChanges[] = {
    {"lost", [](core::Device& d) { d.state = core::DeviceState::kLost; },
     [](core::Device& d) { d.state = core::DeviceState::kReady; }},
    {"reset", [](core::Device& d) { ++d.generation; }, [](core::Device&) {}},
    {"withdrawn", [](core::Device& d) { d.backend->withdrawn = true; },
     [](core::Device& d) { d.backend->withdrawn = false; }},
};

TEST(RetiredBlocks, GoBackToTheDeviceThatGaveThem) {
  given_back.clear();
  {
    core::RetiredBlocks row;
    core::RetiredBlocks::Taken(row, device_of_the_test()).blocks.push_back(block_at(memory));
    EXPECT_EQ(core::RetiredBlocks::Taken(row, device_of_the_test()).blocks.size(), 1u);
    EXPECT_TRUE(given_back.empty()) << "the row still has it";
  }
  EXPECT_EQ(given_back, (std::set<void*>{memory}));
}

TEST(RetiredBlocks, ADeviceThatIsNotTheSameAnyMoreGetsNone) {
  core::Device& device = device_of_the_test();
  for (const Change& change : kChanges) {
    SCOPED_TRACE(change.name);
    given_back.clear();
    const core::RetiredBlock held = block_at(memory);
    {
      core::RetiredBlocks row;
      core::RetiredBlocks::Taken(row, device).blocks.push_back(block_at(memory + 1));
      change.make(device);
      core::give_back(held);
    }
    EXPECT_TRUE(given_back.empty());
    change.undo(device);
  }
}

TEST(RetiredBlocks, OfBeforeAResetAreNotReadAnyMore) {
  core::Device& device = device_of_the_test();
  core::RetiredBlocks row;
  core::RetiredBlocks::Taken(row, device).blocks.push_back(block_at(memory));
  ++device.generation;
  core::RetiredBlocks::Taken(row, device).blocks.push_back(block_at(memory + 1));
  const core::RetiredBlocks::Taken now(row, device);
  ASSERT_EQ(now.blocks.size(), 1u);
  EXPECT_EQ(now.blocks[0].data, memory + 1);
}

TEST(RetiredBlocks, OfOneDeviceAreApartFromThoseOfAnother) {
  core::Device &device = device_of_the_test(), &other = core::device_at({device.backend->index, 1});
  core::RetiredBlocks row;
  core::RetiredBlocks::Taken(row, device).blocks.push_back(block_at(memory));
  EXPECT_TRUE(core::RetiredBlocks::Taken(row, other).blocks.empty());
  EXPECT_EQ(core::RetiredBlocks::Taken(row, device).blocks.size(), 1u);
}

}  // namespace
}  // namespace backplane::testing
