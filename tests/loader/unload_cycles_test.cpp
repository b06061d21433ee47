// The law of reloading: however often a plugin comes and goes while other threads call ops on other devices, every call
// of theirs gives its result, none waits for a lock, and nothing is left behind.
//
// BACKPLANE_UNLOAD_CYCLES: how often (./dev test unload: 10,000). Figures are printed.
#include <malloc.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <cinttypes>
#include <ctime>
#include <thread>

#include "loader/host_traits.hpp"
#include "loader/plugin_files.hpp"

namespace backplane::loader_test {
namespace {

using Clock = std::chrono::steady_clock;

int64_t cycles_wanted() {
  const char* stated = std::getenv("BACKPLANE_UNLOAD_CYCLES");
  return stated ? std::strtoll(stated, nullptr, 10) : 200;
}

struct Figures {
  int64_t calls = 0, wrong = 0, waits = 0;
  int64_t slow = 0;                     // above 1 ms, which a busy machine does too
  double longest = 0, longest_own = 0;  // seconds: on the wall, and of the thread's own time on a processor
};

double own_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

int64_t waits_of_this_thread() {
  rusage used{};
  getrusage(RUSAGE_THREAD, &used);
  return used.ru_nvcsw;  // it gave the processor away of its own accord, as who waits does
}

// Calls an op on a device of its own until `stop`.
Figures call_meanwhile(const std::atomic<bool>& stop) {
  Figures figures;
  const OpHandle op = find_op("first::scale");
  const Tensor x = tensor_on("first", {1, 2});
  const int64_t before = waits_of_this_thread();
  while (!stop.load(std::memory_order_relaxed)) {
    const double own = own_seconds();
    const auto start = Clock::now();
    const std::vector<float> found = values_of(call(op, {value(x)}));
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    ++figures.calls;
    // By the plugin's own kernel, or by the one that "extra" brings while it is loaded.
    figures.wrong += found != std::vector<float>{2, 4} && found != std::vector<float>{3, 6};
    figures.slow += seconds > 1e-3;
    figures.longest = std::max(figures.longest, seconds);
    figures.longest_own = std::max(figures.longest_own, own_seconds() - own);
  }
  figures.waits = waits_of_this_thread() - before;
  return figures;
}

// A plugin with a device of its own and one with a kernel for another's come, are used, and go.
void cycle() {
  load_plugin(plugin_file("second"));
  load_plugin(plugin_file("extra"));
  EXPECT_EQ(call_on("second", "second::scale", {1, -2}), (std::vector<float>{-1, 2}));
  EXPECT_EQ(call_on("first", "extra::scale", {1}), (std::vector<float>{3}));
  unload_plugin("extra");
  unload_plugin("second");
}

Figures run_cycles(int64_t cycles) {
  constexpr int kCallers = 2;
  std::atomic<bool> stop{false};
  Figures each[kCallers], all;
  std::vector<std::thread> callers;
  for (Figures& figures : each) callers.emplace_back([&stop, &figures] { figures = call_meanwhile(stop); });
  for (int64_t i = 0; i < cycles; ++i) cycle();
  stop = true;
  for (std::thread& caller : callers) caller.join();
  for (const Figures& figures : each) {
    all.calls += figures.calls;
    all.wrong += figures.wrong;
    all.slow += figures.slow;
    all.waits += figures.waits;
    all.longest = std::max(all.longest, figures.longest);
    all.longest_own = std::max(all.longest_own, figures.longest_own);
  }
  return all;
}

int64_t bytes_in_use() { return static_cast<int64_t>(mallinfo2().uordblks); }

int64_t mappings_of(const std::string& file) {
  std::ifstream maps("/proc/self/maps");
  int64_t count = 0;
  for (std::string line; std::getline(maps, line);) count += line.find(file) != std::string::npos;
  return count;
}

TEST(UnloadCycles, LeaveNothingBehindAndHoldNobodyUp) {
  const Loaded first("first");
  const int64_t cycles = cycles_wanted();
  run_cycles(std::max<int64_t>(20, cycles / 10));  // until every list has its lasting size
  const uint32_t index = parse_device("first").backend;
  const int64_t before = bytes_in_use();
  const auto start = Clock::now();
  const Figures figures = run_cycles(cycles);
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const int64_t grown = bytes_in_use() - before;
  std::printf("%" PRId64 " cycles of two plugins in %.2f s; %" PRId64 " calls of 2 other threads meanwhile, %" PRId64
              " of them waited; the longest took %.3f ms of its thread's time and %.3f ms of the clock's, %" PRId64
              " above 1 ms; memory in use grew by %" PRId64 " bytes\n",
              cycles, seconds, figures.calls, figures.waits, figures.longest_own * 1e3, figures.longest * 1e3,
              figures.slow, grown);
  EXPECT_EQ(figures.wrong, 0);
  EXPECT_GT(figures.calls, 0);
  EXPECT_EQ(parse_device("first").backend, index);
  EXPECT_LT(grown, 16 * cycles + 4096) << "each cycle leaves something behind";
  if (loader::kHostSanitizer.empty()) {  // whose allocator has locks of its own, and which keeps files mapped
    EXPECT_LT(figures.waits, cycles / 2) << "calls wait for unloads";
    EXPECT_EQ(mappings_of(plugin_file("second")), 0);
  }
}

// Also where checked mode stands in front of the rows (tests/python/conformance/test_checked.py).
TEST(UnloadCycles, OfRowsLeaveNothingBehind) {
  const Loaded first("first");
  const auto cycles = [](int count) {
    for (int i = 0; i < count; ++i) {
      const Loaded extra("extra");
      EXPECT_EQ(call_on("first", "extra::scale", {1}), (std::vector<float>{3}));
    }
  };
  cycles(20);
  const int64_t before = bytes_in_use();
  cycles(200);
  EXPECT_LT(bytes_in_use() - before, 16 * 200 + 4096) << "each cycle leaves something behind";
}

// A key keeps its bit and its record, which no call of the plugin before reads any more.
TEST(UnloadCycles, OfAKeyLeaveNothingBehind) {
  const Loaded first("first");
  const auto cycles = [](int count) {
    for (int i = 0; i < count; ++i) {
      const Loaded keyed("keyed");
      EXPECT_EQ(call_on("first", "first::scale", {1, 2}), (std::vector<float>{2, 4}));
    }
  };
  cycles(20);
  const int64_t before = bytes_in_use();
  cycles(200);
  EXPECT_LT(bytes_in_use() - before, 16 * 200 + 4096) << "each cycle leaves something behind";
}

TEST(UnloadCycles, ABackendKeepsItsIndex) {
  load_plugin(plugin_file("second"));
  const bp_device before = parse_device("second");
  unload_plugin("second");
  EXPECT_NE(failure_of([&] { device_name(before); }).code, BP_OK);
  load_plugin(plugin_file("second"));
  EXPECT_EQ(parse_device("second").backend, before.backend);
  EXPECT_EQ(device_name(before), "second");
  unload_plugin("second");
}

// Two threads ask for one file to be loaded and unloaded: each is served or refused as busy, and at the end it works.
TEST(UnloadCycles, OfSeveralThreadsOverOneFile) {
  std::atomic<int> other{0};
  const auto churn = [&] {
    for (int round = 0; round < 200; ++round) {
      for (const Failure& failure :
           {failure_of([] { load_plugin(plugin_file("second")); }), failure_of([] { unload_plugin("second"); })})
        if (failure.code != BP_OK && failure.code != BP_ERROR_BUSY &&
            failure.text.find("is not loaded") == std::string::npos) {
          ADD_FAILURE() << failure.text;
          ++other;
        }
    }
  };
  std::thread one(churn), two(churn);
  one.join();
  two.join();
  EXPECT_EQ(other, 0);
  load_plugin(plugin_file("second"));
  EXPECT_EQ(call_on("second", "second::scale", {4}), (std::vector<float>{-4}));
  unload_plugin("second");
}

// A registration that fails on one thread while it succeeds on another must not take that away.
TEST(UnloadCycles, AFailureDoesNotUndoALaterSuccess) {
  std::atomic<bool> stop{false};
  std::thread failing([&] {
    while (!stop) failure_of([] { load_plugin(plugin_file("half_way")); });
  });
  for (int round = 0; round < 200; ++round) {
    const Failure failure = failure_of([] { load_plugin(plugin_file("half_way")); });
    EXPECT_TRUE(failure.code == BP_ERROR_DEVICE || failure.code == BP_ERROR_BUSY) << failure.text;
  }
  stop = true;
  failing.join();
  setenv("BACKPLANE_TEST_HALF_WAY_WORKS", "1", 1);
  {
    const Loaded plugin("half_way");
    EXPECT_EQ(Loaded::state_of("half"), "loaded");
    parse_device("half");
  }
  unsetenv("BACKPLANE_TEST_HALF_WAY_WORKS");
}

}  // namespace
}  // namespace backplane::loader_test
