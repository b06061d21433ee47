// Calls of the driver with one fault each, which hardware may hide and the emulator names, and the same calls without
// it. What a lost context does, and what a reset leaves.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "entries.hpp"
#include "kernel.hpp"

namespace emulator {
namespace {

constexpr size_t kBytes = 64;

// The primary context of a device, current on this thread; as new after each test.
class InContext {
 public:
  explicit InContext(int number) : device(number) {
    EXPECT_EQ(cuDevicePrimaryCtxRetain(&context, device), 0);
    EXPECT_EQ(cuCtxPushCurrent_v2(context), 0);
  }
  ~InContext() {
    driver::Context popped = nullptr;
    EXPECT_EQ(cuCtxPopCurrent_v2(&popped), 0);
    EXPECT_EQ(cuDevicePrimaryCtxReset_v2(device), 0);
    EXPECT_EQ(cuDevicePrimaryCtxRelease_v2(device), 0);
  }
  driver::Stream stream(int priority = 0) const {
    driver::Stream made = nullptr;
    EXPECT_EQ(cuStreamCreateWithPriority(&made, driver::kStreamNonBlocking, priority), 0);
    return made;
  }
  driver::Event event(unsigned flags = 0) const {
    driver::Event made = nullptr;
    EXPECT_EQ(cuEventCreate(&made, flags), 0);
    return made;
  }
  driver::Pointer memory() const {
    driver::Pointer made = 0;
    EXPECT_EQ(cuMemAlloc_v2(&made, kBytes), 0);
    return made;
  }

  const int device;
  driver::Context context = nullptr;
};

void expect_code(int found, int code) { EXPECT_EQ(found, code); }

struct Misuse {
  const char* name;
  std::function<int(InContext&, bool faulty)> call;
  int code;
  const char* said;
};
void PrintTo(const Misuse& misuse, std::ostream* out) { *out << misuse.name; }

int copy_from_pinned(InContext& on, bool faulty) {
  std::vector<char> source(kBytes, 1);
  EXPECT_EQ(cuMemHostRegister_v2(source.data(), kBytes, driver::kHostRegisterPortable), 0);
  const driver::Stream stream = on.stream();
  EXPECT_EQ(cuMemcpyHtoDAsync_v2(on.memory(), source.data(), kBytes, stream), 0);
  if (faulty) expect_code(cuMemHostUnregister(source.data()), 0);
  const int found = cuStreamSynchronize(stream);
  if (!faulty) expect_code(cuMemHostUnregister(source.data()), 0);
  return found;
}

int use_stream(InContext& on, bool faulty) {
  const driver::Stream stream = on.stream();
  if (faulty) expect_code(cuStreamDestroy_v2(stream), 0);
  return cuStreamSynchronize(stream);
}

int use_event(InContext& on, bool faulty) {
  const driver::Event event = on.event();
  if (faulty) expect_code(cuEventDestroy_v2(event), 0);
  return cuStreamWaitEvent(on.stream(), event, 0);
}

int record_event_of(InContext& on, bool of_other) {
  const driver::Stream stream = on.stream();
  const InContext other(1);
  const driver::Event theirs = other.event();
  EXPECT_EQ(cuCtxPushCurrent_v2(on.context), 0);
  const int found = cuEventRecord(of_other ? theirs : on.event(), stream);
  driver::Context popped = nullptr;
  EXPECT_EQ(cuCtxPopCurrent_v2(&popped), 0);
  return found;
}

int time_between(InContext& on, bool faulty) {
  const driver::Event start = on.event(faulty ? unsigned{driver::kEventDisableTiming} : 0u), end = on.event();
  const driver::Stream stream = on.stream();
  for (const driver::Event event : {start, end}) EXPECT_EQ(cuEventRecord(event, stream), 0);
  EXPECT_EQ(cuStreamSynchronize(stream), 0);
  float milliseconds = -1;
  return cuEventElapsedTime(&milliseconds, start, end);
}

// A captured copy, with what `break_it` does on the way.
int capture(InContext& on, const std::function<void(driver::Stream)>& break_it) {
  const driver::Pointer x = on.memory(), y = on.memory();
  const driver::Stream stream = on.stream();
  EXPECT_EQ(cuStreamBeginCapture_v2(stream, driver::kCaptureThreadLocal), 0);
  EXPECT_EQ(cuMemcpyDtoDAsync_v2(y, x, kBytes, stream), 0);
  break_it(stream);
  driver::Graph graph = nullptr;
  const int found = cuStreamEndCapture(stream, &graph);
  EXPECT_EQ(graph == nullptr, found != 0);
  return found;
}
int capture_that_waits(InContext& on, bool faulty) {
  return capture(on, [&](driver::Stream stream) {
    if (faulty) expect_code(cuStreamSynchronize(stream), 900);
  });
}
int capture_that_takes_memory(InContext& on, bool faulty) {
  return capture(on, [&](driver::Stream) {
    driver::Pointer made = 0;
    if (faulty) expect_code(cuMemAlloc_v2(&made, kBytes), 900);
  });
}
int capture_of_pageable_memory(InContext& on, bool faulty) {
  const driver::Pointer target = on.memory();
  std::vector<char> source(kBytes);
  return capture(on, [&](driver::Stream stream) {
    if (faulty) expect_code(cuMemcpyHtoDAsync_v2(target, source.data(), kBytes, stream), 900);
  });
}
int capture_behind_other_work(InContext& on, bool faulty) {
  const driver::Event event = on.event();
  EXPECT_EQ(cuEventRecord(event, on.stream()), 0);
  return capture(on, [&](driver::Stream stream) {
    if (faulty) expect_code(cuStreamWaitEvent(stream, event, 0), 905);
  });
}
int capture_whose_event_is_asked(InContext& on, bool faulty) {
  const driver::Event event = on.event();
  return capture(on, [&](driver::Stream stream) {
    EXPECT_EQ(cuEventRecord(event, stream), 0);
    if (faulty) expect_code(cuEventQuery(event), 907);
  });
}

int launch_graph(InContext& on, bool faulty) {
  const driver::Stream stream = on.stream();
  driver::Graph graph = nullptr;
  driver::Executable executable = nullptr;
  EXPECT_EQ(cuStreamBeginCapture_v2(stream, driver::kCaptureRelaxed), 0);
  EXPECT_EQ(cuStreamEndCapture(stream, &graph), 0);
  EXPECT_EQ(cuGraphInstantiateWithFlags(&executable, graph, 0), 0);
  EXPECT_EQ(cuGraphDestroy(graph), 0);
  if (faulty) expect_code(cuGraphExecDestroy(executable), 0);
  return cuGraphLaunch(executable, stream);
}

int replay_over_memory(InContext& on, bool freed) {
  const driver::Pointer x = on.memory();
  const driver::Stream stream = on.stream();
  driver::Graph graph = nullptr;
  driver::Executable executable = nullptr;
  EXPECT_EQ(cuStreamBeginCapture_v2(stream, driver::kCaptureRelaxed), 0);
  EXPECT_EQ(cuMemsetD8Async(x, 7, kBytes, stream), 0);
  EXPECT_EQ(cuStreamEndCapture(stream, &graph), 0);
  EXPECT_EQ(cuGraphInstantiateWithFlags(&executable, graph, 0), 0);
  if (freed) expect_code(cuMemFree_v2(x), 0);
  EXPECT_EQ(cuGraphLaunch(executable, stream), 0);
  return cuStreamSynchronize(stream);
}

int copy_between_devices(InContext& on, bool faulty, bool as_peers) {
  const driver::Pointer target = on.memory();
  const driver::Stream stream = on.stream();
  const InContext other(1);
  const driver::Pointer source = other.memory();
  EXPECT_EQ(cuCtxPushCurrent_v2(on.context), 0);
  if (!faulty) expect_code(cuCtxEnablePeerAccess(other.context, 0), 0);
  int found = as_peers ? cuMemcpyPeerAsync(target, on.context, source, other.context, kBytes, stream)
                       : cuMemcpyDtoDAsync_v2(target, source, kBytes, stream);
  if (found == 0) found = cuStreamSynchronize(stream);
  driver::Context popped = nullptr;
  EXPECT_EQ(cuCtxPopCurrent_v2(&popped), 0);
  return found;
}

class MisuseOfTheDriver : public ::testing::TestWithParam<Misuse> {};

TEST_P(MisuseOfTheDriver, IsNamed) {
  InContext on(0);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(GetParam().call(on, true), GetParam().code);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find(GetParam().said), std::string::npos) << said;
}
TEST_P(MisuseOfTheDriver, IsAllThatIsWrong) {
  InContext on(0);
  EXPECT_EQ(GetParam().call(on, false), 0);
}

INSTANTIATE_TEST_SUITE_P(
    Calls, MisuseOfTheDriver,
    ::testing::Values(
        Misuse{"host_memory_unlocked_before_its_copy", copy_from_pinned, 700, "are no longer"},
        Misuse{"destroyed_stream", use_stream, 400, "the stream was destroyed"},
        Misuse{"destroyed_event", use_event, 400, "the event was destroyed"},
        Misuse{"event_of_another_context", record_event_of, 400, "of another context"},
        Misuse{"time_of_an_event_without_time", time_between, 400, "keeps no time"},
        Misuse{"capture_that_waits", capture_that_waits, 901, "cuStreamSynchronize: not permitted"},
        Misuse{"capture_that_takes_memory", capture_that_takes_memory, 901, "cuMemAlloc: not permitted"},
        Misuse{"capture_of_pageable_memory", capture_of_pageable_memory, 901, "may be gone"},
        Misuse{"capture_behind_other_work", capture_behind_other_work, 901, "cuStreamWaitEvent: not permitted"},
        Misuse{"capture_whose_event_is_asked", capture_whose_event_is_asked, 901, "cuEventQuery: not permitted"},
        Misuse{"destroyed_graph", launch_graph, 400, "the executable graph was destroyed"},
        Misuse{"replay_over_freed_memory", replay_over_memory, 700, "memory after its free"},
        Misuse{"peer_copy_without_access",
               [](InContext& on, bool faulty) { return copy_between_devices(on, faulty, true); }, 705, "no access"},
        Misuse{"plain_copy_without_access",
               [](InContext& on, bool faulty) { return copy_between_devices(on, faulty, false); }, 700,
               "without access to it"}),
    [](const auto& info) { return std::string(info.param.name); });

// ---- functions of the host

void count(void* runs) { ++*static_cast<std::atomic<int>*>(runs); }

TEST(HostFunctions, RunInOrderAndWithoutACallOfTheProgram) {
  InContext on(0);
  const driver::Stream stream = on.stream();
  std::atomic<int> runs{0};
  ASSERT_EQ(cuMemsetD8Async(on.memory(), 1, kBytes, stream), 0);
  ASSERT_EQ(cuLaunchHostFunc(stream, count, &runs), 0);
  while (runs == 0) std::this_thread::yield();
  ASSERT_EQ(cuLaunchHostFunc(stream, count, &runs), 0);
  EXPECT_EQ(cuStreamSynchronize(stream), 0);
  EXPECT_EQ(runs, 2);
}

driver::Function faulty_kernel() {
  driver::Module module = nullptr;
  driver::Function function = nullptr;
  EXPECT_EQ(cuModuleLoadData(&module, kernel_text("st.global.u32 [%o], %t;").c_str()), 0);
  EXPECT_EQ(cuModuleGetFunction(&function, module, "k"), 0);
  return function;
}

TEST(HostFunctions, AreDroppedOnceTheContextIsLostAndAResetBringsItBack) {
  std::atomic<int> runs{0};
  {
    InContext on(0);
    const driver::Stream stream = on.stream();
    uint64_t nowhere = 8;
    void* parameters[] = {&nowhere, &nowhere};
    ASSERT_EQ(cuLaunchKernel(faulty_kernel(), 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr), 0);
    ASSERT_EQ(cuLaunchHostFunc(stream, count, &runs), 0);
    EXPECT_EQ(cuStreamSynchronize(stream), 700);
    driver::Pointer none = 0;
    EXPECT_EQ(cuMemAlloc_v2(&none, kBytes), 700) << "every later call says so";
  }
  EXPECT_EQ(runs, 0);
  InContext on(0);
  const driver::Stream stream = on.stream();
  EXPECT_EQ(cuLaunchHostFunc(stream, count, &runs), 0);
  EXPECT_EQ(cuStreamSynchronize(stream), 0);
  EXPECT_EQ(runs, 1);
}

TEST(Streams, TheHigherPriorityGoesFirst) {
  for (int round = 0; round < 8; ++round) {
    InContext on(0);
    const driver::Pointer x = on.memory();
    const driver::Stream low = on.stream(0), high = on.stream(-1);
    ASSERT_EQ(cuMemsetD8Async(x, 1, kBytes, low), 0);
    ASSERT_EQ(cuMemsetD8Async(x, 2, kBytes, high), 0);
    ASSERT_EQ(cuCtxSynchronize(), 0);
    EXPECT_EQ(*reinterpret_cast<const char*>(x), 1) << "written last";
  }
}

}  // namespace
}  // namespace emulator
