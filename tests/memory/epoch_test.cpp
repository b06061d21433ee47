// Laws of draining: it waits for every call that was running when it began, for no other, and never for itself.
#include "memory/process/epoch.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "backplane/error.hpp"
#include "memory/fork.hpp"

namespace backplane::core {
namespace {

TEST(Drain, ReturnsAtOnceWithoutCalls) { drain(); }

TEST(Drain, WaitsForACallThatIsRunning) {
  std::atomic<bool> inside{false}, release{false}, left{false};
  std::thread caller([&] {
    CallGuard guard;
    inside = true;
    while (!release) std::this_thread::yield();
    left = true;
  });
  while (!inside) std::this_thread::yield();
  std::thread helper([&] { release = true; });
  drain();
  EXPECT_TRUE(left);
  helper.join();
  caller.join();
}

TEST(Drain, DoesNotWaitForCallsThatAThreadHasAbandoned) {
  std::atomic<bool> abandoned{false}, release{false};
  std::thread caller([&] {
    CallGuard outer, inner;
    abandon_calls();
    abandoned = true;
    while (!release) std::this_thread::yield();
  });
  while (!abandoned) std::this_thread::yield();
  drain();
  EXPECT_FALSE(release);
  release = true;
  caller.join();
}

TEST(Drain, DoesNotWaitForCallsThatBeganLater) {
  std::atomic<bool> stop{false};
  std::thread caller([&] {
    while (!stop) CallGuard guard;
  });
  for (int i = 0; i < 100; ++i) drain();
  stop = true;
  caller.join();
}

TEST(Drain, SurvivesThreadsThatEndMeanwhile) {
  std::atomic<bool> stop{false};
  std::thread spawner([&] {
    while (!stop) std::thread([] { CallGuard guard; }).join();
  });
  for (int i = 0; i < 200; ++i) drain();
  stop = true;
  spawner.join();
}

TEST(Drain, IsRefusedFromInsideACall) {
  CallGuard guard;
  try {
    drain();
    FAIL() << "drain returned";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), BP_ERROR_BUSY);
  }
}

// The purpose: after withdrawing and draining, no thread uses withdrawn data.
TEST(Drain, NobodyUsesARowAfterIt) {
  struct Row {
    std::atomic<int> users{0};
    std::atomic<bool> closed{false};
  };
  for (int round = 0; round < 50; ++round) {
    Row row;
    std::atomic<Row*> slot{&row};
    std::atomic<int> violations{0}, started{0};
    std::vector<std::thread> callers;
    for (int i = 0; i < 3; ++i)
      callers.emplace_back([&] {
        ++started;
        for (;;) {
          CallGuard guard;
          Row* found = slot.load(std::memory_order_relaxed);
          if (!found) return;
          if (found->closed.load(std::memory_order_relaxed)) ++violations;
          found->users.fetch_add(1, std::memory_order_relaxed);
          if (found->closed.load(std::memory_order_relaxed)) ++violations;
        }
      });
    while (started < 3) std::this_thread::yield();
    slot.store(nullptr, std::memory_order_relaxed);
    drain();
    row.closed.store(true, std::memory_order_relaxed);
    for (std::thread& caller : callers) caller.join();
    EXPECT_EQ(violations, 0);
  }
}

TEST(CallGuard, NestsWithOneEpochPerOutermostCall) {
  const uint64_t before = thread_state.epoch;
  {
    CallGuard outer;
    EXPECT_TRUE(thread_state.inside());
    { CallGuard inner; }
    EXPECT_TRUE(thread_state.inside());
  }
  EXPECT_FALSE(thread_state.inside());
  EXPECT_EQ(thread_state.epoch & ~kSlowEntry, (before & ~kSlowEntry) + kNextEpoch);
}

TEST(Cold, IsOnePerThreadAndEmptyAtTheStart) {
  cold().error = "mine";
  std::string other;
  std::thread([&] { other = cold().error; }).join();
  EXPECT_EQ(other, "");
  EXPECT_EQ(cold().error, "mine");
}

// Runs `body` in a forked child; true when it returned true there.
template <class Body>
bool in_child(Body body) {
  const pid_t child = fork();
  if (child == 0) _exit(body() ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(Fork, TheChildForgetsThreadsThatItDoesNotHave) {
  std::atomic<bool> inside{false}, stop{false};
  std::thread caller([&] {
    CallGuard guard;
    inside = true;
    while (!stop) std::this_thread::yield();
  });
  while (!inside) std::this_thread::yield();
  EXPECT_TRUE(in_child([] {
    drain();
    return true;
  }));
  stop = true;
  caller.join();
}

TEST(Fork, IsCountedInTheChildOnly) {
  const uint32_t before = fork_generation();
  EXPECT_TRUE(in_child([&] { return fork_generation() == before + 1; }));
  EXPECT_EQ(fork_generation(), before);
}

}  // namespace
}  // namespace backplane::core
