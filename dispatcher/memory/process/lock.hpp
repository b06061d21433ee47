// The one kind of lock of this process, which every fork takes: a child has no thread to give back what another thread
// holds. All that is shared between threads and not atomic is guarded by one.
//
// Any thread may lock; the thread that holds a lock may take it again. Locks are taken in the order of their ranks.
// Under one nobody waits for the interpreter lock or for another call to end, since the thread that forks may hold the
// one and be inside the other: tensors and hooks that a lock's holder lets go of are dropped after it.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "memory/process/thread_state.hpp"

namespace backplane::core {

// From the outermost to the innermost.
enum class LockRank : uint8_t {
  kGradient,   // a leaf's gradient, while an op adds to it
  kView,       // a view's history, while it is made anew
  kDevice,     // a device's streams, while a kernel is put on one
  kLifecycle,  // plugins
  kRegistry,   // ops, rows and keys
  kBackend,    // a backend, while its devices start
  kTape,       // which hooks a tensor has, and which leaf a node stands for
  kPool,       // the list of jobs
  kThreads,    // the list of threads that make calls
  kAnew,       // held while calls end: not taken, but made anew in the child, whose one thread holds none
  kCount
};

class Lock {
 public:
  constexpr Lock() = default;
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  // From now on forks know it. It lives as long as the process; once, before other threads have it.
  void enlist(LockRank rank) noexcept;

  void lock() {
    if (owner_.load(std::memory_order_relaxed) == &thread_state) {
      ++again_;
      return;
    }
    mutex_.lock();
    ++thread_state.locks;
    owner_.store(&thread_state, std::memory_order_relaxed);
  }
  void unlock() {
    if (again_ > 0) {
      --again_;
      return;
    }
    --thread_state.locks;
    owner_.store(nullptr, std::memory_order_relaxed);
    mutex_.unlock();
  }
  // False: another thread holds it.
  bool try_lock() {
    if (owner_.load(std::memory_order_relaxed) == &thread_state) {
      ++again_;
      return true;
    }
    if (!mutex_.try_lock()) return false;
    ++thread_state.locks;
    owner_.store(&thread_state, std::memory_order_relaxed);
    return true;
  }
  // By its owner: has it taken the lock once only, so that unlock() lets others in?
  bool held_once() const noexcept { return again_ == 0; }
  Lock* next() const noexcept { return next_; }
  // Releases the lock without its owner, in a forked child, which has only one thread.
  void make_anew() noexcept;

 private:
  std::mutex mutex_;
  std::atomic<const ThreadState*> owner_{nullptr};
  uint32_t again_ = 0;  // times that the owner took it beyond the first; the owner's
  Lock* next_ = nullptr;
};

// A lock of static storage, known to forks from the library's start.
class StaticLock : public Lock {
 public:
  explicit StaticLock(LockRank rank) noexcept { enlist(rank); }
};

// Of a rank, the latest first. Lists only grow.
Lock* first_lock(LockRank rank) noexcept;

// Takes every lock but those of kAnew: what another thread is about to change under one is whole when this returns.
void lock_everything();
// Gives them back. `in_child`: those of kAnew are free.
void unlock_everything(bool in_child) noexcept;

}  // namespace backplane::core
