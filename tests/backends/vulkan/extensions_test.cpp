// What the backend offers beyond its table, and what a driver that fails leaves: this executable stands before the
// loader's vkQueueSubmit and vkAllocateMemory, which the plugin finds here.
#include <dlfcn.h>
#include <vulkan/vulkan.h>

#include <atomic>
#include <cstring>
#include <future>

#include "../device_fixture.hpp"
#include "backplane/abi/device_extensions.h"

namespace {

std::atomic<VkResult> next_submission{VK_SUCCESS}, next_allocation{VK_SUCCESS};

template <class Function>
Function of_loader(const char* name) {
  static void* const loader = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<Function>(dlsym(loader, name));
}

}  // namespace

extern "C" __attribute__((visibility("default"))) VkResult vkQueueSubmit(VkQueue queue, uint32_t count,
                                                                         const VkSubmitInfo* submits, VkFence fence) {
  static const auto real = of_loader<PFN_vkQueueSubmit>("vkQueueSubmit");
  const VkResult failure = next_submission.exchange(VK_SUCCESS);
  return failure != VK_SUCCESS ? failure : real(queue, count, submits, fence);
}

extern "C" __attribute__((visibility("default"))) VkResult vkAllocateMemory(VkDevice device,
                                                                            const VkMemoryAllocateInfo* info,
                                                                            const VkAllocationCallbacks* callbacks,
                                                                            VkDeviceMemory* memory) {
  static const auto real = of_loader<PFN_vkAllocateMemory>("vkAllocateMemory");
  const VkResult failure = next_allocation.exchange(VK_SUCCESS);
  return failure != VK_SUCCESS ? failure : real(device, info, callbacks, memory);
}

namespace {

class VulkanExtensions : public DeviceTest {
 protected:
  template <class Extension>
  const Extension& extension(const char* name) {
    return *static_cast<const Extension*>(table.extension(table.context, name, 1));
  }
  // The device's memory is gone, and must not be freed.
  void reset() {
    ASSERT_EQ(extension<bp_extension_reset>(BP_EXTENSION_RESET).reset(table.context, kOrdinal), BP_OK) << last_error;
    streams.clear();
    vectors.clear();
    stream = new_stream();
  }
  static void BP_CALL count(void* runs) { ++*static_cast<std::atomic<int>*>(runs); }
};

TEST_F(VulkanExtensions, NamesAndVersionsThatThereAreNotGiveNull) {
  EXPECT_EQ(table.extension(table.context, "no such thing", 1), nullptr);
  EXPECT_EQ(table.extension(table.context, BP_EXTENSION_RESET, 2), nullptr);
}

TEST_F(VulkanExtensions, ATicketCompletesAfterItsFunctionAndWhatFollowsWaits) {
  const auto& callbacks = extension<bp_extension_callbacks>(BP_EXTENSION_CALLBACKS);
  std::promise<void> gate;
  std::shared_future<void> opened = gate.get_future().share();
  const auto hold = [](void* argument) { static_cast<std::shared_future<void>*>(argument)->wait(); };
  Vector& x = new_vector(100, 1, stream, 1);
  ASSERT_EQ(add(x, x, x, stream, 2), BP_OK) << last_error;
  ASSERT_EQ(callbacks.notify(table.context, kOrdinal, stream, 3, hold, &opened), BP_OK) << last_error;
  ASSERT_EQ(add(x, x, x, stream, 4), BP_OK) << last_error;
  ASSERT_EQ(flush(stream, 4), BP_OK);
  bp_stream* other = new_stream();
  ASSERT_EQ(table.stream_wait(table.context, kOrdinal, other, stream, 4), BP_OK);
  EXPECT_LT(completed(stream), 3u);
  gate.set_value();
  EXPECT_EQ(read(x, other), std::vector<float>(100, 4));
  EXPECT_EQ(wait(stream, 4), BP_OK);
  EXPECT_EQ(completed(stream), 4u);
}

TEST_F(VulkanExtensions, AFunctionIsOverBeforeItsStreamEnds) {
  const auto& callbacks = extension<bp_extension_callbacks>(BP_EXTENSION_CALLBACKS);
  std::atomic<int> runs{0};
  for (uint64_t ticket = 1; ticket <= 20; ++ticket)
    ASSERT_EQ(callbacks.notify(table.context, kOrdinal, stream, ticket, count, &runs), BP_OK) << last_error;
  table.stream_destroy(table.context, kOrdinal, stream);
  streams.clear();
  EXPECT_EQ(runs, 20);
}

TEST_F(VulkanExtensions, OnlyPinnedMemoryIsReadAndWrittenLaterAndInOrder) {
  const auto& pinned = extension<bp_extension_pinned>(BP_EXTENSION_PINNED);
  const float numbers[] = {1, 2, 3, 4};
  Vector& x = new_vector(4, 0, stream, 1);
  EXPECT_EQ(pinned.copy_from_host(table.context, kOrdinal, stream, 2, x.data, 0, numbers, 16), BP_ERROR_DEVICE);
  EXPECT_NE(last_error.find("not pinned"), std::string::npos) << last_error;
  void* memory = nullptr;
  ASSERT_EQ(pinned.allocate(table.context, 16, &memory), BP_OK) << last_error;
  std::memcpy(memory, numbers, sizeof numbers);
  for (uint64_t ticket = 2; ticket < 20; ticket += 3) {  // each copy reads what the one before it wrote
    ASSERT_EQ(pinned.copy_from_host(table.context, kOrdinal, stream, ticket, x.data, 0, memory, 16), BP_OK)
        << last_error;
    ASSERT_EQ(add(x, x, x, stream, ticket + 1), BP_OK) << last_error;
    ASSERT_EQ(pinned.copy_to_host(table.context, kOrdinal, stream, ticket + 2, memory, x.data, 0, 16), BP_OK);
  }
  ASSERT_EQ(flush(stream, 22), BP_OK);
  ASSERT_EQ(wait(stream, 22), BP_OK);
  EXPECT_EQ(*static_cast<float*>(memory), 64.f);
  EXPECT_EQ(pinned.deallocate(table.context, memory, 16), BP_OK);
  EXPECT_EQ(pinned.deallocate(table.context, memory, 16), BP_ERROR_VALUE) << "it was given back";
}

TEST_F(VulkanExtensions, ALostDeviceSaysSoAndIsAsNewAfterAReset) {
  const auto& pinned = extension<bp_extension_pinned>(BP_EXTENSION_PINNED);
  const auto& time = extension<bp_extension_time>(BP_EXTENSION_TIME);
  void* memory = nullptr;
  ASSERT_EQ(pinned.allocate(table.context, 16, &memory), BP_OK) << last_error;
  const float numbers[] = {1, 2, 3, 4};
  std::memcpy(memory, numbers, sizeof numbers);
  Vector& lost = new_vector(1000, 1, stream, 1);
  ASSERT_EQ(pinned.copy_from_host(table.context, kOrdinal, stream, 2, lost.data, 0, memory, 16), BP_OK) << last_error;
  bp_time_stamp* stamp = nullptr;
  (void)time.stamp(table.context, kOrdinal, stream, 3, &stamp);  // a device may have no clock
  ASSERT_EQ(add(lost, lost, lost, stream, 4), BP_OK);
  next_submission = VK_ERROR_DEVICE_LOST;
  EXPECT_EQ(flush(stream, 4), BP_ERROR_DEVICE_LOST);
  EXPECT_NE(last_error.find("VK_ERROR_DEVICE_LOST"), std::string::npos) << last_error;
  reset();
  bp_memory_stats stats{};
  stats.header = BP_HEADER(bp_memory_stats);
  ASSERT_EQ(table.memory_stats(table.context, kOrdinal, &stats), BP_OK);
  EXPECT_EQ(stats.in_use, 0u);
  Vector& x = new_vector(4, 0, stream, 1);
  ASSERT_EQ(pinned.copy_from_host(table.context, kOrdinal, stream, 2, x.data, 0, memory, 16), BP_OK) << last_error;
  ASSERT_EQ(add(x, x, x, stream, 3), BP_OK) << last_error;
  EXPECT_EQ(read(x, stream), (std::vector<float>{2, 4, 6, 8}));
  EXPECT_EQ(pinned.deallocate(table.context, memory, 16), BP_OK) << last_error;
}

TEST_F(VulkanExtensions, MemoryThatRunsOutIsAnErrorOfTheCallAlone) {
  for (const VkResult failure : {VK_ERROR_OUT_OF_DEVICE_MEMORY, VK_ERROR_OUT_OF_HOST_MEMORY}) {
    next_allocation = failure;
    void* data = nullptr;
    EXPECT_EQ(table.allocate(table.context, kOrdinal, 1 << 20, &data), BP_ERROR_MEMORY);
    EXPECT_NE(last_error.find("vkAllocateMemory"), std::string::npos) << last_error;
  }
  Vector& x = new_vector(1000, 1, stream, 1);
  ASSERT_EQ(add(x, x, x, stream, 2), BP_OK) << last_error;
  EXPECT_EQ(read(x, stream), std::vector<float>(1000, 2));
}

}  // namespace
