// The extensions of the CUDA backend, called through their C tables as a host does: what the kit's laws cannot try,
// since they lose the device or need the driver itself.
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "backplane/abi/device_extensions.h"
#include "device_fixture.hpp"
#include "driver/driver.hpp"

namespace {

namespace driver = backplane::cuda::driver;

class CudaExtensions : public DeviceTest {
 protected:
  template <class Struct>
  const Struct& extension(const char* name) {
    return *static_cast<const Struct*>(table.extension(table.context, name, 1));
  }
  // A function of the driver that the backend has opened.
  template <class Signature>
  Signature* of_driver(const char* name) {
    static void* library = dlopen("libcuda.so.1", RTLD_NOW);
    return reinterpret_cast<Signature*>(dlsym(library, name));
  }
  template <class Handle>
  Handle native(const char* kind) {
    void* handle = nullptr;
    EXPECT_EQ(table.native(table.context, kOrdinal, stream, kind, &handle), BP_OK) << last_error;
    return static_cast<Handle>(handle);
  }
  void make_current() {
    EXPECT_EQ(of_driver<int(driver::Context)>("cuCtxPushCurrent_v2")(native<driver::Context>("CUcontext")), 0);
  }
  void make_others_current() {
    driver::Context popped = nullptr;
    EXPECT_EQ(of_driver<int(driver::Context*)>("cuCtxPopCurrent_v2")(&popped), 0);
  }
  // A kernel that writes where nothing is.
  void lose_device() { launch("mov.u64 %d1, 8;\nst.global.u64 [%d1], %d1;\nret;\n"); }
  // One that never ends.
  void hang() { launch("$L:\nbra.uni $L;\n"); }
  void launch(const std::string& body) {
    const std::string text =
        ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k()\n{\n.reg .b64 %d<2>;\n" + body + "}\n";
    make_current();
    driver::Module module = nullptr;
    driver::Function function = nullptr;
    ASSERT_EQ(of_driver<int(driver::Module*, const void*)>("cuModuleLoadData")(&module, text.c_str()), 0);
    ASSERT_EQ(
        of_driver<int(driver::Function*, driver::Module, const char*)>("cuModuleGetFunction")(&function, module, "k"),
        0);
    using Launch = int(driver::Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                       driver::Stream, void**, void**);
    ASSERT_EQ(of_driver<Launch>("cuLaunchKernel")(function, 1, 1, 1, 1, 1, 1, 0, native<driver::Stream>("CUstream"),
                                                  nullptr, nullptr),
              0);
    make_others_current();
  }
  // The device's memory is gone, and must not be freed.
  void reset() {
    const auto& extension_reset = extension<bp_extension_reset>(BP_EXTENSION_RESET);
    ASSERT_EQ(extension_reset.reset(table.context, kOrdinal), BP_OK) << last_error;
    streams.clear();
    vectors.clear();
    stream = new_stream();
  }
  static void BP_CALL count(void* runs) { ++*static_cast<std::atomic<int>*>(runs); }
};

TEST_F(CudaExtensions, NamesAndVersionsThatThereAreNotGiveNull) {
  EXPECT_EQ(table.extension(table.context, "no such thing", 1), nullptr);
  EXPECT_EQ(table.extension(table.context, BP_EXTENSION_TIME, 2), nullptr);
}

TEST_F(CudaExtensions, ACompletionRunsOnceAlsoOnADeviceThatIsLost) {
  const auto& callbacks = extension<bp_extension_callbacks>(BP_EXTENSION_CALLBACKS);
  std::atomic<int> runs{0};
  ASSERT_EQ(callbacks.notify(table.context, kOrdinal, stream, 1, count, &runs), BP_OK) << last_error;
  ASSERT_EQ(flush(stream, 1), BP_OK);
  ASSERT_EQ(wait(stream, 1), BP_OK);
  EXPECT_EQ(runs, 1);
  lose_device();
  ASSERT_EQ(callbacks.notify(table.context, kOrdinal, stream, 2, count, &runs), BP_OK) << last_error;
  // The device may be lost already when it is asked.
  const bp_status flushed = flush(stream, 2);
  EXPECT_EQ(flushed == BP_OK ? wait(stream, 2) : flushed, BP_ERROR_DEVICE_LOST) << last_error;
  table.stream_destroy(table.context, kOrdinal, stream);
  EXPECT_EQ(runs, 2) << "stream_destroy came back before the function was over";
  reset();
  EXPECT_EQ(runs, 2);
}

TEST_F(CudaExtensions, AWaitForWorkThatNeverEndsEndsInTimeOrWithTheDevice) {
  const auto& callbacks = extension<bp_extension_callbacks>(BP_EXTENSION_CALLBACKS);
  const auto& events = extension<bp_extension_events>(BP_EXTENSION_EVENTS);
  Vector& x = new_vector(4, 1, stream, 1);
  bp_stream* other = new_stream();
  void* event = nullptr;
  hang();
  ASSERT_EQ(events.record(table.context, kOrdinal, stream, 2, &event), BP_OK) << last_error;
  ASSERT_EQ(events.wait(table.context, kOrdinal, other, 1, event), BP_OK) << last_error;
  std::atomic<int> runs{0};
  ASSERT_EQ(callbacks.notify(table.context, kOrdinal, stream, 3, count, &runs), BP_OK) << last_error;
  for (bp_stream* one : {stream, other}) {
    ASSERT_EQ(flush(one, 3), BP_OK) << last_error;
    int32_t done = -1;
    ASSERT_EQ(table.wait_for(table.context, kOrdinal, one, 3, 1'000'000, &done), BP_OK) << last_error;
    EXPECT_EQ(done, 0);
  }
  std::atomic<int> said[3] = {-1, -1, -1};
  std::thread waits[3] = {std::thread([&] { said[0] = wait(stream, 3); }),
                          std::thread([&] { said[1] = wait(other, 3); }), std::thread([&] {
                            float out[4];
                            said[2] = table.copy_to_host(table.context, kOrdinal, other, out, x.data, 0, sizeof out);
                          })};
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  for (const auto& one : said) EXPECT_EQ(one, -1) << "its wait ended before the device was given up";
  ASSERT_EQ(table.abort(table.context, kOrdinal), BP_OK) << last_error;
  for (std::thread& one : waits) one.join();
  for (const auto& one : said) EXPECT_EQ(one, BP_ERROR_DEVICE_LOST) << last_error;
  EXPECT_EQ(flush(other, 4), BP_ERROR_DEVICE_LOST) << last_error;
  EXPECT_EQ(table.deallocate(table.context, kOrdinal, x.data, 16), BP_ERROR_DEVICE_LOST) << last_error;
  reset();
  EXPECT_EQ(runs, 1) << "the completion behind the work that was given up";
  Vector& y = new_vector(4, 1, stream, 1);
  ASSERT_EQ(add(y, y, y, stream, 2), BP_OK) << last_error;
  EXPECT_EQ(read(y, stream), std::vector<float>(4, 2));
}

TEST_F(CudaExtensions, AResetDeviceIsAsNewAndPinnedMemoryIsThereAsBefore) {
  const auto& pinned = extension<bp_extension_pinned>(BP_EXTENSION_PINNED);
  const auto& time = extension<bp_extension_time>(BP_EXTENSION_TIME);
  void* memory = nullptr;
  ASSERT_EQ(pinned.allocate(table.context, 16, &memory), BP_OK) << last_error;
  const float numbers[] = {1, 2, 3, 4};
  std::memcpy(memory, numbers, sizeof numbers);
  bp_time_stamp* stamp = nullptr;
  ASSERT_EQ(time.stamp(table.context, kOrdinal, stream, 1, &stamp), BP_OK) << last_error;
  new_vector(1000, 1, stream, 2);
  lose_device();
  reset();
  bp_memory_stats stats{};
  stats.header = BP_HEADER(bp_memory_stats);
  ASSERT_EQ(table.memory_stats(table.context, kOrdinal, &stats), BP_OK);
  EXPECT_EQ(stats.in_use, 0u);
  make_current();
  EXPECT_EQ(of_driver<int(void*, size_t, unsigned)>("cuMemHostRegister_v2")(memory, 16, 1), 712) << "it is locked";
  make_others_current();
  Vector& x = new_vector(4, 0, stream, 1);
  ASSERT_EQ(pinned.copy_from_host(table.context, kOrdinal, stream, 2, x.data, 0, memory, 16), BP_OK) << last_error;
  ASSERT_EQ(add(x, x, x, stream, 3), BP_OK) << last_error;
  EXPECT_EQ(read(x, stream), (std::vector<float>{2, 4, 6, 8}));
  EXPECT_EQ(pinned.deallocate(table.context, memory, 16), BP_OK) << last_error;
}

TEST_F(CudaExtensions, OnlyPinnedMemoryIsReadAndWrittenLater) {
  const auto& pinned = extension<bp_extension_pinned>(BP_EXTENSION_PINNED);
  const float numbers[] = {1, 2, 3, 4};
  Vector& x = new_vector(4, 0, stream, 1);
  EXPECT_EQ(pinned.copy_from_host(table.context, kOrdinal, stream, 2, x.data, 0, numbers, 16), BP_ERROR_DEVICE);
  EXPECT_NE(last_error.find("not pinned"), std::string::npos) << last_error;
  void* memory = nullptr;
  ASSERT_EQ(pinned.allocate(table.context, 16, &memory), BP_OK);
  EXPECT_EQ(pinned.deallocate(table.context, memory, 16), BP_OK);
  EXPECT_EQ(pinned.deallocate(table.context, memory, 16), BP_ERROR_VALUE) << "it was given back";
}

TEST_F(CudaExtensions, AStreamOfAnotherLibraryIsTakenAndStaysThatLibrarys) {
  const auto& extension_streams = extension<bp_extension_streams>(BP_EXTENSION_STREAMS);
  driver::Stream theirs = nullptr;
  make_current();
  ASSERT_EQ(of_driver<int(driver::Stream*, unsigned, int)>("cuStreamCreateWithPriority")(&theirs, 1, 0), 0);
  make_others_current();
  bp_stream* ours = nullptr;
  ASSERT_EQ(extension_streams.import_handle(table.context, kOrdinal, theirs, &ours), BP_OK) << last_error;
  void* handle = nullptr;
  ASSERT_EQ(extension_streams.handle(table.context, kOrdinal, ours, &handle), BP_OK);
  EXPECT_EQ(handle, theirs);
  Vector& x = new_vector(4, 1, stream, 1);
  ASSERT_EQ(add(x, x, x, ours, 1), BP_OK) << last_error;
  EXPECT_EQ(read(x, ours), std::vector<float>(4, 2));
  table.stream_destroy(table.context, kOrdinal, ours);
  make_current();
  EXPECT_EQ(of_driver<int(driver::Stream)>("cuStreamDestroy_v2")(theirs), 0) << "it was destroyed with ours";
  make_others_current();
}

TEST_F(CudaExtensions, TheGreatestPriorityIsCudas) {
  const auto& extension_streams = extension<bp_extension_streams>(BP_EXTENSION_STREAMS);
  int32_t least = 1, greatest = -1;
  ASSERT_EQ(extension_streams.priorities(table.context, kOrdinal, &least, &greatest), BP_OK) << last_error;
  ASSERT_LT(least, greatest);
  for (const int32_t priority : {least, greatest}) {
    bp_stream* made = nullptr;
    void* handle = nullptr;
    int found = 1;
    ASSERT_EQ(extension_streams.create(table.context, kOrdinal, priority, &made), BP_OK) << last_error;
    streams.push_back(made);
    ASSERT_EQ(extension_streams.handle(table.context, kOrdinal, made, &handle), BP_OK);
    make_current();
    EXPECT_EQ(of_driver<int(void*, int*)>("cuStreamGetPriority")(handle, &found), 0);
    make_others_current();
    EXPECT_EQ(found, -priority);
  }
}

// More than a second apart, where the clock's origin moves: from the later one, with the earlier one read after it.
TEST_F(CudaExtensions, StampsFarApartAreInOrderWhicheverIsReadFirst) {
  const auto& time = extension<bp_extension_time>(BP_EXTENSION_TIME);
  bp_time_stamp* stamps[3] = {};
  uint64_t at[3] = {}, ticket = 0;
  for (bp_time_stamp*& stamp : stamps) {
    ASSERT_EQ(time.stamp(table.context, kOrdinal, stream, ++ticket, &stamp), BP_OK) << last_error;
    ASSERT_EQ(flush(stream, ticket), BP_OK);
    ASSERT_EQ(wait(stream, ticket), BP_OK);
    if (ticket == 1) std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  }
  for (const int which : {1, 0, 2}) {
    EXPECT_EQ(time.read(table.context, kOrdinal, stamps[which], &at[which]), BP_OK) << last_error;
    time.drop(table.context, kOrdinal, stamps[which]);
  }
  EXPECT_GT(at[0], 0u);
  EXPECT_GE(at[1] - at[0], 1'000'000'000u);
  EXPECT_LE(at[1], at[2]);
}

}  // namespace
