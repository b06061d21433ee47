// Laws of the locks: one thread at a time, the same thread again, and all of them at once while others use them.
#include "memory/process/lock.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "backplane/threads.hpp"
#include "memory/process/interrupt.hpp"

namespace backplane::core {
namespace {

TEST(LockOfThreads, OneThreadAtATime) {
  Lock lock;
  int count = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 20000; ++k) {
        std::lock_guard guard(lock);
        ++count;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 80000);
}

TEST(LockOfThreads, ItsHolderMayTakeItAgain) {
  Lock lock;
  std::atomic<int> order{0};
  lock.lock();
  lock.lock();
  std::thread other([&] {
    std::lock_guard guard(lock);
    order = order == 2 ? 3 : -1;
  });
  order = 1;
  lock.unlock();
  std::this_thread::yield();
  order = 2;
  lock.unlock();
  other.join();
  EXPECT_EQ(order, 3);
}

TEST(LockOfThreads, AllAreTakenAndGivenBackWhileOthersUseThem) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      while (!stop)
        for (size_t rank = 0; rank < static_cast<size_t>(LockRank::kCount); ++rank)
          for (Lock* lock = first_lock(static_cast<LockRank>(rank)); lock; lock = lock->next())
            std::lock_guard guard(*lock);
    });
  for (int i = 0; i < 200; ++i) {
    lock_everything();
    unlock_everything(false);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

// A thread that checks for an interrupt may have to wait for a lock whose holder waits for this one.
TEST(LockOfThreads, NoInterruptIsAskedForUnderOne) {
  static int asked;
  asked = 0;
  set_interrupt_check([] { ++asked; });
  Lock lock;
  {
    std::lock_guard guard(lock);
    check_interrupt();
    std::lock_guard again(lock);
    check_interrupt();
  }
  EXPECT_EQ(asked, 0);
  check_interrupt();
  EXPECT_EQ(asked, 1);
  set_interrupt_check(nullptr);
}

TEST(LockOfThreads, EveryRankHasOne) {
  // A device's and a backend's come with them.
  for (const LockRank rank : {LockRank::kGradient, LockRank::kView, LockRank::kTape, LockRank::kPool})
    EXPECT_NE(first_lock(rank), nullptr) << static_cast<int>(rank);
}

}  // namespace
}  // namespace backplane::core
