// Streams and tickets over a backend whose work runs only when somebody waits: order, waiting, errors, memory.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <set>

#include "backplane/abi/device_extensions.h"
#include "backplane/features.hpp"
#include "backplane/memory_kinds.hpp"
#include "backplane/stream.hpp"
#include "memory/devices/device.hpp"
#include "memory/devices/stream.hpp"
#include "memory/lazy_backend.hpp"
#include "registry/registry.hpp"

namespace backplane::testing {
namespace {

TEST(Stream, WorkRunsInOrderWhenTheHostWaits) {
  Tensor y = doubled(doubled(lazy({1, 2, 3})));
  EXPECT_EQ(values(y), (std::vector<double>{4, 8, 12}));
}

TEST(Stream, ADataErrorNamesItsOpAndLeavesTheDeviceUsable) {
  Tensor bad = doubled(lazy({1, 13}));
  try {
    values(bad);
    FAIL() << "the deferred error was lost";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), BP_ERROR_DATA);
    EXPECT_STREQ(error.what(),
                 ("bp::negative on device " + device_name(lazy_backend()) + ": an unlucky element").c_str());
  }
  EXPECT_EQ(values(doubled(lazy({4}))), (std::vector<double>{8}));
}

TEST(Stream, AnErrorOfNoKnownTicketSpoilsAllWorkWhoseOutcomeIsNotKnown) {
  for (const uint64_t stated : {uint64_t{0}, UINT64_MAX}) {
    const Tensor good = doubled(lazy({1}));
    EXPECT_EQ(values(good), (std::vector<double>{2}));
    lazy_device.stated = [=](uint64_t) { return stated; };
    const Tensor before = doubled(lazy({3})), bad = doubled(lazy({1, 13})), after = doubled(lazy({4})),
                 from_bad = doubled(bad);
    for (const Tensor& spoiled : {bad, bad, from_bad, before, after}) EXPECT_THROW(values(spoiled), Error);
    lazy_device.stated = [](uint64_t ticket) { return ticket; };
    EXPECT_EQ(values(good), (std::vector<double>{2}));
    EXPECT_EQ(values(doubled(lazy({5}))), (std::vector<double>{10}));
  }
}

TEST(Stream, ErrorsThatCannotBeReadSpoilTheWork) {
  const Tensor bad = doubled(lazy({13})), from_bad = doubled(bad);
  lazy_device.tells_errors = false;
  for (const Tensor& spoiled : {bad, bad, from_bad}) EXPECT_THROW(values(spoiled), Error);
  lazy_device.tells_errors = true;
  for (const Tensor& spoiled : {bad, from_bad}) EXPECT_THROW(values(spoiled), Error);
  constexpr int kMost = 8;  // what nobody has seen comes with the waits that follow
  int raised = 0;
  for (bool more = true; more && raised < kMost; raised += more) {
    more = false;
    try {
      core::synchronize(core::device_at(lazy_backend()));
    } catch (const Error&) {
      more = true;
    }
  }
  EXPECT_LT(raised, kMost);
}

TEST(Stream, AUseOnAnotherStreamWaitsOnce) {
  core::Device& d = core::device_at(lazy_backend());
  core::Stream& first = core::current_stream(d);
  core::Stream& second = core::new_stream(d);
  Tensor x = doubled(lazy({1}));
  int before = lazy_device.stream_waits;
  core::set_current_stream(d, &second);
  Tensor y = doubled(x);
  Tensor z = doubled(y);
  EXPECT_EQ(lazy_device.stream_waits, before + 1);
  EXPECT_EQ(values(z), (std::vector<double>{8}));
  core::set_current_stream(d, &first);
  EXPECT_EQ(values(x), (std::vector<double>{2}));
}

TEST(Stream, FreedMemoryIsReusedAtOnceOnItsOwnStreamOnly) {
  core::Device& d = core::device_at(lazy_backend());
  core::Stream& own = core::current_stream(d);
  core::Stream& other = core::new_stream(d);
  Tensor x = lazy({1, 2});
  void* block = nullptr;
  {
    Tensor y = doubled(x);
    block = y.get()->dl.data;
  }
  core::set_current_stream(d, &other);
  Tensor far = empty(x.shape(), BP_FLOAT64, lazy_backend());
  EXPECT_NE(far.get()->dl.data, block) << "its last use has not completed";
  core::set_current_stream(d, &own);
  Tensor near = empty(x.shape(), BP_FLOAT64, lazy_backend());
  EXPECT_EQ(near.get()->dl.data, block);
  core::synchronize(d);
}

TEST(Stream, ScratchBlocksOfACallAreApartAndLaterCallsMayHaveThem) {
  Tensor x = lazy({1});
  op("exp", {value(x)});
  void* const first = scratch_blocks[0];
  EXPECT_NE(scratch_blocks[0], scratch_blocks[1]);
  op("exp", {value(x)});
  EXPECT_TRUE(scratch_blocks[0] == first || scratch_blocks[1] == first) << "the stream is in order";
}

// What work on a stream has to wait for, of a storage's uses on others.
int waits_of(core::Stream& stream, bp_storage* storage, bool writes) {
  core::Device& d = *storage->device;
  std::lock_guard lock(d.lock);
  const int before = lazy_device.stream_waits;
  core::issue(stream, "test", &storage, writes ? 0 : 1, &storage, writes ? 1 : 0);
  return lazy_device.stream_waits - before;
}

TEST(Stream, ReadersRunSideBySideAndAWriterComesAfterAll) {
  core::Device& d = core::device_at(lazy_backend());
  core::Stream &a = core::current_stream(d), &b = core::new_stream(d), &c = core::new_stream(d);
  Tensor x = lazy({1, 2});
  bp_storage* storage = x.get()->storage;
  EXPECT_EQ(waits_of(b, storage, false), 1) << "behind the write";
  EXPECT_EQ(waits_of(c, storage, false), 1) << "behind the write, not behind the other reader";
  EXPECT_EQ(waits_of(a, storage, false), 0);
  EXPECT_EQ(waits_of(b, storage, false), 1) << "the write is not complete yet";
  EXPECT_EQ(waits_of(a, storage, true), 2) << "behind both readers";
  EXPECT_EQ(waits_of(c, storage, true), 1) << "behind the last write alone";
  core::synchronize(d);
}

TEST(Stream, ABlockThatAnotherStreamReadsIsNotReused) {
  core::Device& d = core::device_at(lazy_backend());
  core::Stream &own = core::current_stream(d), &other = core::new_stream(d);
  for (int i = 0; i < 100; ++i) doubled(lazy({1}));  // its tickets are ahead of the other's
  const int64_t shape[] = {4096};
  Tensor x = empty(shape, BP_FLOAT64, lazy_backend());
  void* const block = x.get()->dl.data;
  waits_of(own, x.get()->storage, true);
  waits_of(other, x.get()->storage, false);
  core::wait_for(own, own.issued);
  x = Tensor();
  EXPECT_NE(empty(shape, BP_FLOAT64, lazy_backend()).get()->dl.data, block);
  core::synchronize(d);
  EXPECT_EQ(empty(shape, BP_FLOAT64, lazy_backend()).get()->dl.data, block);
}

// Memory that the host can address, on a device whose work runs when somebody waits.
TEST(Stream, TheHostWaitsForSharedMemoryBeforeItTouchesIt) {
  lazy_backend();
  auto* record = new bp_plugin_record;
  record->name = "unified";
  record->index = 3;
  bp_backend_def backend = lazy_definition();
  backend.name = "unified";
  backend.flags = BP_BACKEND_ADDRESSABLE | BP_BACKEND_HOST_MEMORY;
  ASSERT_EQ(core::host_table.register_backend(record, &backend), BP_OK) << core::host_table.get_error();
  bp_kernel_def kernel = kernel_row("bp::negative", "unified", twice);
  kernel.dtypes = BP_DTYPE_BIT(BP_FLOAT64);
  ASSERT_EQ(core::host_table.register_kernel(record, &kernel), BP_OK) << core::host_table.get_error();
  const bp_device unified = parse_device("unified");
  const double numbers[] = {1, 2, 3};
  const int64_t shape[] = {3};
  Tensor x = from_host(numbers, shape, {}, BP_FLOAT64, unified);
  EXPECT_EQ(values(doubled(doubled(x))), (std::vector<double>{4, 8, 12}));
  void* const block = doubled(x).get()->dl.data;  // given back while its work is queued
  const double others[] = {7, 7, 7};
  Tensor later = from_host(others, shape, {}, BP_FLOAT64, unified);
  EXPECT_EQ(later.get()->dl.data, block);
  EXPECT_EQ(values(later), (std::vector<double>{7, 7, 7}));
}

// ---- what a backend without extensions gives

template <class F>
std::string refusal(F f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), BP_ERROR_NOT_IMPLEMENTED) << error.what();
    return error.what();
  }
  return "";
}

TEST(Stream, WhatTheBackendDoesNotOfferIsRefusedByName) {
  const bp_device id = lazy_backend();
  const Tensor x = lazy({1});
  const backplane::Stream stream(id);
  EXPECT_NE(refusal([&] { stream.record().elapsed(stream.record()); }).find("\"time\""), std::string::npos);
  EXPECT_NE(refusal([&] { backplane::Stream::from_handle(id, &lazy_device); }).find("\"streams\""), std::string::npos);
  EXPECT_NE(refusal([&] { Recording recording(id); }).find("\"capture\""), std::string::npos);
  EXPECT_NE(refusal([&] { pin(x, id); }).find("\"pinned\""), std::string::npos);
  EXPECT_NE(refusal([&] { reset_device(id); }).find("\"reset\""), std::string::npos);
  EXPECT_NE(refusal([&] { empty_in("fast", {}, BP_FLOAT64, id); }).find("\"memory\""), std::string::npos);
  EXPECT_THROW(backplane::Stream(id, 1), Error);
  EXPECT_TRUE(memory_kinds(id).empty());
  EXPECT_FALSE(has_feature(id, "capture"));
  EXPECT_TRUE(has_feature(id, "f16"));
}

TEST(Stream, ACompletionRunsInALaterWaitWhereTheBackendDoesNotSay) {
  const backplane::Stream stream(lazy_backend());
  int done = 0;
  const StreamScope scope(stream);
  Tensor y = doubled(lazy({1}));
  stream.on_complete([&] { ++done; });
  EXPECT_FALSE(stream.query());
  EXPECT_EQ(done, 0);
  stream.synchronize();
  EXPECT_EQ(done, 1);
  EXPECT_TRUE(stream.query());
}

TEST(Stream, DevicesThatAreNoPeersCopyInPiecesThroughTheHost) {
  bp_device other = lazy_backend();
  other.ordinal = 1;
  const int64_t shape[] = {1 << 20};  // two pieces
  std::vector<double> numbers(1 << 20);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>(i) + 0.5;
  Tensor x = from_host(numbers.data(), shape, {}, BP_FLOAT64, lazy_backend());
  Tensor there = to_device(doubled(x), other);
  for (double& number : numbers) number *= 2;
  EXPECT_EQ(there.device().ordinal, 1);
  EXPECT_EQ(values(there), numbers);
}

TEST(Stream, AStreamIsLentAndGivenBack) {
  core::Device& d = core::device_at(lazy_backend());
  { const backplane::Stream first(lazy_backend()); }
  const size_t streams = d.streams.size();
  for (int i = 0; i < 2000; ++i) backplane::Stream again(lazy_backend());
  EXPECT_EQ(d.streams.size(), streams);
}

// Its slot `stamp` is missing.
const void* half_an_extension(void*, const char* name, uint32_t) {
  static const bp_extension_time kTime{BP_HEADER(bp_extension_time), nullptr, nullptr, nullptr};
  return std::strcmp(name, BP_EXTENSION_TIME) == 0 ? &kTime : nullptr;
}

TEST(Stream, AnExtensionWithoutItsSlotsIsRefused) {
  lazy_backend();
  auto* record = new bp_plugin_record;
  record->name = "halved";
  record->index = 4;
  bp_backend_def backend = lazy_definition();
  backend.name = "halved";
  backend.extension = half_an_extension;
  ASSERT_EQ(core::host_table.register_backend(record, &backend), BP_OK) << core::host_table.get_error();
  try {
    parse_device("halved");
    FAIL() << "half an extension was taken";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("must fill stamp"), std::string::npos) << error.what();
  }
}

// The last test: it kills the device.
TEST(Stream, ZAFatalErrorLosesTheDeviceWithItsFirstCause) {
  Tensor x = lazy({666});
  Tensor y = doubled(x);
  EXPECT_THROW(values(y), Error);
  for (int i = 0; i < 2; ++i) {
    try {
      doubled(x);
      FAIL() << "the device is lost";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), BP_ERROR_DEVICE_LOST);
      EXPECT_NE(std::string(error.what()).find("an unlucky element"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace backplane::testing
