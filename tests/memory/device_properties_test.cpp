// Devices over queues and handles: copies in granules, a largest block, no empty buffers, dtypes that are only held,
// rows that bind each block once; and what a backend's `extension` throws.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>

#include "backplane/checked.hpp"
#include "host_backend.hpp"
#include "memory/copy.hpp"
#include "memory/devices/device.hpp"
#include "memory/tensors/tensor_impl.hpp"
#include "null_backend.hpp"
#include "record/host_table.hpp"

namespace backplane::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr uint64_t kGranule = 16, kLargest = 1 << 16;

void expect_whole(uint64_t offset, uint64_t size) {
  EXPECT_GT(size, 0u);
  EXPECT_EQ(offset % kGranule, 0u);
  EXPECT_EQ(size % kGranule, 0u);
}

void* written = nullptr;                 // by the kernel that ran last
std::vector<const bp_tensor*> operands;  // of it
bp_status note_operands(const bp_frame*, const bp_value* args, int32_t n_args, bp_value* outs, int32_t) {
  operands = {outs[0].u.t};
  for (int32_t i = 0; i < n_args; ++i)
    if (args[i].tag == BP_TAG_TENSOR) operands.push_back(args[i].u.t);
  written = outs[0].u.t->dl.data;
  for (const bp_tensor* operand : operands) EXPECT_NE(operand->dl.data, nullptr);
  for (size_t i = 1; i < operands.size(); ++i)
    EXPECT_TRUE(operands[i] == operands[0] || operands[i]->dl.data != written) << "operand " << i;
  return BP_OK;
}

// Takes bytes that split granules.
bp_status use_scratch(const bp_frame* frame, const bp_value*, int32_t, bp_value*, int32_t) {
  void* data = nullptr;
  return frame->host->scratch(frame, kGranule + 1, &data);
}

bp_backend_def granular_backend() {
  bp_backend_def d = host_backend("granular");
  d.flags = BP_BACKEND_SYNCHRONOUS;
  d.properties = [](void*, int32_t, bp_device_properties* out) -> bp_status {
    out->total_memory = 0;
    out->copy_granule = kGranule;
    out->largest_block = kLargest;
    out->only_holds = BP_DTYPE_SET_BIT(BP_FLOAT64);
    return BP_OK;
  };
  d.allocate = [](void*, int32_t, uint64_t size, void** data) -> bp_status {
    expect_whole(0, size);
    EXPECT_LE(size, kLargest);
    *data = std::malloc(size);
    return BP_OK;
  };
  d.copy_from_host = [](void*, int32_t, bp_stream*, uint64_t, void* dst, uint64_t offset, const void* src,
                        uint64_t size) -> bp_status {
    expect_whole(offset, size);
    std::memcpy(static_cast<char*>(dst) + offset, src, size);
    return BP_OK;
  };
  d.copy_to_host = [](void*, int32_t, bp_stream*, void* dst, void* src, uint64_t offset, uint64_t size) -> bp_status {
    expect_whole(offset, size);
    std::memcpy(dst, static_cast<char*>(src) + offset, size);
    return BP_OK;
  };
  d.copy = [](void*, int32_t, bp_stream*, uint64_t, void* dst, uint64_t dst_offset, void* src, uint64_t src_offset,
              uint64_t size) -> bp_status {
    expect_whole(dst_offset, size);
    expect_whole(src_offset, size);
    std::memmove(static_cast<char*>(dst) + dst_offset, static_cast<char*>(src) + src_offset, size);
    return BP_OK;
  };
  return d;
}

core::Device& granular() {
  static const bp_device id = [] {
    null_backend();
    auto* record = new bp_plugin_record;
    record->name = "granular";
    record->index = core::kCountedPlugins;
    const bp_backend_def backend = granular_backend();
    EXPECT_EQ(core::host_table.register_backend(record, &backend), BP_OK) << core::host_table.get_error();
    enable_checked_kernels();  // of the rows that follow
    check_kernels(false);
    bp_kernel_def scratch = kernel_row("bp::multiply", "granular", use_scratch);
    scratch.dtypes = BP_MASK_ANY;
    EXPECT_EQ(core::host_table.register_kernel(record, &scratch), BP_OK) << core::host_table.get_error();
    for (const char* op : {"bp::negative", "bp::add", "bp::index_put", "bp::copy"}) {
      bp_kernel_def row = kernel_row(op, "granular", note_operands);
      row.flags = BP_KERNEL_STRIDED | BP_KERNEL_INPLACE | BP_KERNEL_SEPARATE_BLOCKS | BP_KERNEL_BROADCASTS;
      row.dtypes = 0;
      row.dtype_set = BP_MASK_ANY;
      EXPECT_EQ(core::host_table.register_kernel(record, &row), BP_OK) << core::host_table.get_error();
    }
    return parse_device("granular");
  }();
  return core::device_at(id);
}

std::string said(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(CopyGranule, BytesThatSplitGranulesArriveAndLeaveTheOthersAlone) {
  constexpr uint64_t kSize = 5 * kGranule;
  core::Device& device = granular();
  bp_storage* x = core::new_storage(device, kSize);
  bp_storage* y = core::new_storage(device, kSize);
  for (uint64_t offset : {0, 1, 15, 16, 17, 40})
    for (uint64_t size : {1, 3, 15, 16, 17, 32, 39}) {
      std::vector<char> expected(kSize, 'a'), piece(size, 'b'), found(kSize), part(size);
      core::copy_from_host(device, x, 0, expected.data(), kSize);
      core::copy_from_host(device, y, 0, expected.data(), kSize);
      core::copy_from_host(device, x, offset, piece.data(), size);
      core::copy_to_host(device, x, offset, part.data(), size);
      EXPECT_EQ(part, piece);
      std::memcpy(expected.data() + offset, piece.data(), size);
      core::copy_to_host(device, x, 0, found.data(), kSize);
      EXPECT_EQ(found, expected) << offset << " " << size;
      core::copy_within(device, y, offset, x, offset, size);
      core::copy_to_host(device, y, 0, found.data(), kSize);
      EXPECT_EQ(found, expected) << offset << " " << size;
    }
  core::release(x);
  core::release(y);
}

TEST(CopyGranule, CheckedModeKeepsToIt) {
  const bp_device id = core::id_of(granular());
  for (int64_t size : {1, 5, 16, 33}) {
    const Tensor x = empty({&size, 1}, BP_UINT8, id);
    check_kernels(true);
    const std::string error = said([&] { op("multiply", {value(x), value(x)}); });
    check_kernels(false);
    EXPECT_EQ(error, "");
  }
}

TEST(LargestBlock, MoreIsRefusedWithTheLimit) {
  const int64_t shape[] = {static_cast<int64_t>(kLargest) + 1};
  const bp_device id = core::id_of(granular());
  EXPECT_THAT(
      said([&] { empty(shape, BP_UINT8, id); }),
      AllOf(HasSubstr("65536 bytes"), HasSubstr("the largest that the device has"), HasSubstr("smaller pieces")));
  const int64_t fits[] = {static_cast<int64_t>(kLargest)};
  EXPECT_EQ(said([&] { empty(fits, BP_UINT8, id); }), "");
}

TEST(EmptyBuffers, ReachNoFunction) {
  const int64_t shape[] = {0, 3};
  const Tensor x = empty(shape, BP_FLOAT32, core::id_of(granular()));
  EXPECT_NE(x.get()->dl.data, nullptr);
  op("negative", {value(x)});
  EXPECT_EQ(operands.size(), 2u);
}

TEST(SeparateBlocks, NoInputLiesInAnOutputsBlock) {
  const int64_t shape[] = {8}, half[] = {4};
  const bp_device id = core::id_of(granular());
  const Tensor whole = empty(shape, BP_FLOAT32, id);
  const Tensor low = Tensor::adopt([&] {
    core::retain(whole.get()->storage);
    return core::new_tensor_over(whole.get()->storage, BP_FLOAT32, 1, half, nullptr, 0);
  }());
  const Tensor high = Tensor::adopt([&] {
    core::retain(whole.get()->storage);
    return core::new_tensor_over(whole.get()->storage, BP_FLOAT32, 1, half, nullptr, 16);
  }());
  bp_value out = value(low);
  out.flags = BP_VALUE_GIVEN;
  const bp_value args[] = {value(low), value(high)};
  const uint32_t add = find_op("bp::add");
  ASSERT_EQ(core::host_table.call_op(nullptr, add, args, 2, &out, 1), BP_OK) << core::host_table.get_error();
  EXPECT_EQ(operands.size(), 3u);  // note_operands has looked
}

TEST(OnlyHeldDtypes, AreMovedAndNotAccumulated) {
  const int64_t shape[] = {4};
  const bp_device id = core::id_of(granular());
  const Tensor x = empty(shape, BP_FLOAT64, id), at = empty(shape, BP_INT64, id);
  EXPECT_THAT(said([&] { op("negative", {value(x)}); }), HasSubstr("does not compute in float64"));
  EXPECT_EQ(said([&] { op("copy", {value(x)}); }), "");
  bp_tensor* index = at.get();
  bp_value list{}, accumulate{};
  list.tag = BP_TAG_TENSOR_LIST;
  list.count = 1;
  list.u.tensors = &index;
  accumulate.tag = BP_TAG_BOOL;
  EXPECT_EQ(said([&] { op("index_put", {value(x), list, value(x), accumulate}); }), "");
  accumulate.u.i = 1;
  EXPECT_THAT(said([&] {
                op("index_put", {value(x), list, value(x), accumulate});
              }),
              HasSubstr("does not compute in float64"));
}

TEST(Extension, WhatItThrowsRefusesTheBackend) {
  null_backend();
  auto* record = new bp_plugin_record;
  record->name = "throwing";
  record->index = core::kCountedPlugins;
  bp_backend_def backend = host_backend("throwing");
  backend.extension = [](void*, const char*, uint32_t) -> const void* { throw std::runtime_error("out of order"); };
  ASSERT_EQ(core::host_table.register_backend(record, &backend), BP_OK) << core::host_table.get_error();
  EXPECT_THAT(said([] { parse_device("throwing"); }),
              AllOf(HasSubstr("extension threw an exception: out of order"), HasSubstr("throwing")));
}

TEST(Properties, AGranuleThatIsNoPowerOfTwoIsRefused) {
  null_backend();
  auto* record = new bp_plugin_record;
  record->name = "odd";
  record->index = core::kCountedPlugins;
  bp_backend_def backend = host_backend("odd");
  backend.properties = [](void*, int32_t, bp_device_properties* out) -> bp_status {
    out->copy_granule = 12;
    return BP_OK;
  };
  ASSERT_EQ(core::host_table.register_backend(record, &backend), BP_OK) << core::host_table.get_error();
  EXPECT_THAT(said([] { parse_device("odd"); }),
              HasSubstr("the copy_granule 12; expected 0 or a power of two up to 4096"));
}

}  // namespace
}  // namespace backplane::testing
