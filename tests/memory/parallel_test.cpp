// Laws of parallel_for: every index once, no piece below the grain, unique workers, the first failure in the order
// of the range, and the same results from any thread, nested, and in a forked child.
#include "memory/process/parallel.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <limits>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "backplane/error.hpp"
#include "backplane/threads.hpp"
#include "memory/process/epoch.hpp"

#if defined(__SANITIZE_THREAD__)
#define SKIP_UNDER_TSAN() GTEST_SKIP() << "the thread sanitizer cannot start threads in a forked child"
#else
#define SKIP_UNDER_TSAN() (void)0
#endif

namespace backplane::core {
namespace {

template <class Body>
bp_status run(int64_t begin, int64_t end, int64_t grain, Body& body) {
  return parallel_for(
      begin, end, grain,
      [](void* context, int64_t from, int64_t to, int32_t worker) -> bp_status {
        return (*static_cast<Body*>(context))(from, to, worker);
      },
      &body);
}

bp_status fail_with(bp_status code, const char* message) {
  cold().error = message;
  return cold().error_code = code;
}

class Parallel : public ::testing::TestWithParam<int32_t> {
 protected:
  void SetUp() override {
    before_ = get_num_threads();
    set_num_threads(GetParam());
  }
  void TearDown() override { set_num_threads(before_); }

 private:
  int32_t before_ = 1;
};
INSTANTIATE_TEST_SUITE_P(Threads, Parallel, ::testing::Values(1, 2, 3, 8));

TEST_P(Parallel, VisitsEveryIndexOnceInPiecesOfAtLeastTheGrain) {
  for (int64_t size : {0, 1, 2, 7, 64, 1000, 1023})
    for (int64_t grain : {-1, 0, 1, 3, 64, 1000, 5000}) {
      std::vector<std::atomic<int>> visits(static_cast<size_t>(size));
      std::atomic<bool> too_small{false};
      auto body = [&](int64_t from, int64_t to, int32_t) {
        if (to - from < grain && to - from != size) too_small = true;
        for (int64_t i = from; i < to; ++i) ++visits[static_cast<size_t>(i - 5)];
        return BP_OK;
      };
      EXPECT_EQ(run(5, 5 + size, grain, body), BP_OK);
      EXPECT_FALSE(too_small) << size << " by " << grain;
      for (const auto& count : visits) EXPECT_EQ(count, 1);
    }
}

TEST_P(Parallel, CoversARangeAsLargeAsTheType) {
  std::atomic<uint64_t> covered{0};
  auto body = [&](int64_t from, int64_t to, int32_t) {
    covered += static_cast<uint64_t>(to) - static_cast<uint64_t>(from);
    return BP_OK;
  };
  EXPECT_EQ(run(std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max(), 1, body), BP_OK);
  EXPECT_EQ(covered, std::numeric_limits<uint64_t>::max());
}

TEST_P(Parallel, WorkersAreUniqueAmongRunningBodies) {
  std::vector<std::atomic<int>> running(static_cast<size_t>(worker_count()));
  std::atomic<bool> shared{false}, out_of_range{false};
  auto body = [&](int64_t, int64_t, int32_t worker) {
    if (worker < 0 || worker >= worker_count()) {
      out_of_range = true;
      return BP_OK;
    }
    auto& mine = running[static_cast<size_t>(worker)];
    if (++mine > 1) shared = true;
    std::this_thread::yield();
    --mine;
    return BP_OK;
  };
  for (int i = 0; i < 50; ++i) EXPECT_EQ(run(0, 64, 1, body), BP_OK);
  EXPECT_FALSE(shared);
  EXPECT_FALSE(out_of_range);
}

TEST_P(Parallel, TheEarliestFailureReachesTheCaller) {
  for (int i = 0; i < 50; ++i) {
    auto body = [](int64_t from, int64_t to, int32_t) -> bp_status {
      if (from <= 100 && 100 < to) return fail_with(BP_ERROR_DATA, "index 100 is bad");
      if (from <= 900 && 900 < to) return fail_with(BP_ERROR_VALUE, "index 900 is bad");
      return BP_OK;
    };
    EXPECT_EQ(run(0, 1000, 50, body), BP_ERROR_DATA);
    EXPECT_EQ(cold().error, "index 100 is bad");
    EXPECT_EQ(cold().error_code, BP_ERROR_DATA);
  }
}

TEST_P(Parallel, AnExceptionBecomesAStatus) {
  auto body = [](int64_t, int64_t, int32_t) -> bp_status { throw std::runtime_error("boom"); };
  EXPECT_EQ(run(0, 100, 1, body), BP_ERROR_INTERNAL);
  EXPECT_NE(cold().error.find("boom"), std::string::npos);
}

TEST_P(Parallel, AnEarlierMessageDoesNotPassForASilentFailure) {
  cold().error = "of yesterday";
  auto body = [](int64_t, int64_t, int32_t) -> bp_status { return BP_ERROR_DEVICE; };
  EXPECT_EQ(run(0, 100, 1, body), BP_ERROR_DEVICE);
  EXPECT_EQ(cold().error, "");
}

TEST_P(Parallel, NestedCallsRunInline) {
  std::atomic<int> elsewhere{0}, inner_indices{0};
  auto outer = [&](int64_t from, int64_t to, int32_t) -> bp_status {
    const auto self = std::this_thread::get_id();
    auto inner = [&](int64_t begin, int64_t end, int32_t worker) -> bp_status {
      if (std::this_thread::get_id() != self || worker != 0) ++elsewhere;
      inner_indices += static_cast<int>(end - begin);
      return BP_OK;
    };
    for (int64_t i = from; i < to; ++i)
      if (const bp_status status = run(0, 10, 1, inner)) return status;
    return BP_OK;
  };
  EXPECT_EQ(run(0, 20, 1, outer), BP_OK);
  EXPECT_EQ(elsewhere, 0);
  EXPECT_EQ(inner_indices, 200);
}

TEST_P(Parallel, BodiesCountAsCalls) {
  std::atomic<bool> refused{true};
  auto body = [&](int64_t, int64_t, int32_t) -> bp_status {
    try {
      drain();
      refused = false;
    } catch (const Error&) {
    }
    return BP_OK;
  };
  CallGuard guard;
  EXPECT_EQ(run(0, 64, 1, body), BP_OK);
  EXPECT_TRUE(refused);
}

TEST_P(Parallel, ManyCallersShareThePool) {
  std::vector<std::thread> callers;
  std::atomic<int64_t> total{0};
  for (int i = 0; i < 6; ++i)
    callers.emplace_back([&] {
      auto body = [&](int64_t from, int64_t to, int32_t) -> bp_status {
        total += to - from;
        return BP_OK;
      };
      for (int round = 0; round < 100; ++round) EXPECT_EQ(run(0, 100, 1, body), BP_OK);
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(total, 6 * 100 * 100);
}

TEST_P(Parallel, TheCountMayChangeWhileOthersCall) {
  std::atomic<bool> stop{false}, out_of_range{false};
  std::thread caller([&] {
    while (!stop) {
      CallGuard guard;
      const int32_t sized_for = worker_count();
      auto body = [&](int64_t, int64_t, int32_t worker) -> bp_status {
        if (worker >= sized_for) out_of_range = true;
        return BP_OK;
      };
      run(0, 64, 1, body);
    }
  });
  for (int i = 0; i < 100; ++i) set_num_threads(1 + i % 8);
  stop = true;
  caller.join();
  EXPECT_FALSE(out_of_range);
}

TEST_P(Parallel, WorksInAForkedChild) {
  SKIP_UNDER_TSAN();
  auto body = [](int64_t, int64_t, int32_t) -> bp_status { return BP_OK; };
  EXPECT_EQ(run(0, 64, 1, body), BP_OK);
  const pid_t child = fork();
  if (child == 0) {
    std::atomic<int64_t> total{0};
    auto count = [&](int64_t from, int64_t to, int32_t) -> bp_status {
      total += to - from;
      return BP_OK;
    };
    _exit(run(0, 1000, 1, count) == BP_OK && total == 1000 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(run(0, 64, 1, body), BP_OK);
}

TEST(NumThreads, RefusesWhatIsNoCount) {
  for (int32_t count : {0, -3, 100000}) EXPECT_THROW(set_num_threads(count), Error) << count;
}

TEST(NumThreads, RefusesFromInsideACall) {
  CallGuard guard;
  EXPECT_THROW(set_num_threads(2), Error);
}

}  // namespace
}  // namespace backplane::core
