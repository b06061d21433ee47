// Memory of other frameworks on a device with streams: tensors over it, results in it, and the vendor's events.
#include "backplane/foreign_block.hpp"

#include <gtest/gtest.h>

#include "backplane/stream.hpp"
#include "memory/devices/device.hpp"
#include "memory/devices/stream.hpp"
#include "memory/lazy_backend.hpp"

namespace backplane::testing {
namespace {

// Memory of a framework, and how often it was given back.
struct Foreign {
  std::vector<double> elements;
  int released = 0;

  ForeignBlock block(bool owned = true) {
    ForeignBlock made{elements.data(), elements.size() * sizeof(double)};
    if (owned) made.release = [](void* owner) { ++static_cast<Foreign*>(owner)->released; };
    made.owner = owned ? this : nullptr;
    return made;
  }
};

Tensor wrapped(const ForeignBlock& block, std::vector<int64_t> shape, uint64_t byte_offset = 0) {
  return wrap_block(block, BP_FLOAT64, shape, {}, byte_offset, lazy_backend());
}
void finish() { core::synchronize(core::device_at(lazy_backend())); }

template <class F>
std::string said(F f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ForeignBlock, IsReadWhereItLiesAndReleasedAfterTheWork) {
  Foreign memory{{1, 2, 3}};
  Tensor x = wrapped(memory.block(), {2}, 8);
  EXPECT_EQ(x.get()->dl.data, memory.elements.data());
  const Tensor y = doubled(x);
  memory.elements[2] = 5;  // nothing has run yet, and nothing was copied
  x = Tensor();
  EXPECT_EQ(memory.released, 0) << "its work has not ended";
  EXPECT_EQ(values(y), (std::vector<double>{4, 10}));
  finish();
  EXPECT_EQ(memory.released, 1);
}

TEST(ForeignBlock, ThatIsLentIsLeftAlone) {
  Foreign memory{{1, 2}};
  { const Tensor x = wrapped(memory.block(false), {2}); }
  EXPECT_EQ(memory.released, 0);
}

TEST(ForeignBlock, IsOrderedOnOtherStreams) {
  core::Device& d = core::device_at(lazy_backend());
  Foreign memory{{1}};
  const Tensor x = wrapped(memory.block(false), {1});
  const int before = lazy_device.stream_waits;
  const StreamScope other{backplane::Stream(lazy_backend())};
  EXPECT_EQ(values(doubled(x)), std::vector<double>{2});
  EXPECT_EQ(lazy_device.stream_waits, before + 1) << name_of(d);
}

TEST(ForeignBlock, WhatLiesOutsideIsRefusedAndStaysTheCallers) {
  Foreign memory{{1, 2}};
  EXPECT_NE(said([&] { wrapped(memory.block(), {3}); }).find("ends at byte 24 of a storage of 16"), std::string::npos);
  EXPECT_NE(said([&] { wrapped(memory.block(), {1}, 4); }).find("multiple of the item size 8"), std::string::npos);
  EXPECT_NE(said([&] { wrapped(ForeignBlock{nullptr, 16}, {1}); }).find("data is null"), std::string::npos);
  EXPECT_EQ(memory.released, 0);
}

TEST(CallInto, ResultsLieInTheBlocksOfTheAllocator) {
  Foreign memory{{7, 7, 7}};
  std::vector<uint64_t> asked;
  const Tensor x = lazy({1, 2, 3});
  const bp_value args[] = {value(x)};
  std::vector<Tensor> results =
      call_into(find_op("bp::negative"), args, 1, lazy_backend(), [&](uint64_t bytes, bp_device) {
        asked.push_back(bytes);
        return memory.block();
      });
  EXPECT_EQ(asked, std::vector<uint64_t>{24});
  EXPECT_EQ(values(results[0]), (std::vector<double>{2, 4, 6}));
  EXPECT_EQ(memory.elements, (std::vector<double>{2, 4, 6}));
  results.clear();
  finish();
  EXPECT_EQ(memory.released, 1);
}

TEST(CallInto, ABlockThatDoesNotFitIsGivenBack) {
  Foreign memory{{7}};
  const Tensor x = lazy({1, 2, 3});
  const bp_value args[] = {value(x)};
  const auto call = [&](const char* op) {
    return said(
        [&] { call_into(find_op(op), args, 1, lazy_backend(), [&](uint64_t, bp_device) { return memory.block(); }); });
  };
  EXPECT_NE(call("bp::negative").find("at least 24"), std::string::npos);
  EXPECT_EQ(memory.released, 1);
  EXPECT_NE(call("bp::squeeze").find("share memory"), std::string::npos);
}

TEST(NativeEvents, OrderWorkOfOthersAndOurs) {
  const bp_device id = lazy_backend();
  const backplane::Stream first(id), second(id);
  Foreign memory{{1}};
  Tensor x, y;
  {
    const StreamScope scope(first);
    x = doubled(lazy({4}));
  }
  std::shared_ptr<void> event = first.record_native();
  EXPECT_EQ(lazy_device.events, 1);
  second.wait_native(event.get());
  event.reset();
  EXPECT_EQ(lazy_device.events, 0);
  const auto& state = *static_cast<const double*>(x.get()->dl.data);
  second.synchronize();
  EXPECT_EQ(state, 8) << "the second stream did not wait for the work before the event";
  EXPECT_NE(said([&] { second.wait_native(nullptr); }).find("null event"), std::string::npos);
}

}  // namespace
}  // namespace backplane::testing
