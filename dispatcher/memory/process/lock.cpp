// The lists of all locks, by rank, and taking all of them.
#include "memory/process/lock.hpp"

#include <array>
#include <new>
#include <utility>

namespace backplane::core {
namespace {

constexpr auto kRanks = static_cast<size_t>(LockRank::kCount);
constinit std::array<std::atomic<Lock*>, kRanks> lists{};

// What lock_everything found; read and written by the thread that holds them all.
constinit std::array<Lock*, kRanks> taken{};

void unlock_all(const std::array<Lock*, kRanks>& heads) noexcept {
  for (size_t rank = kRanks; rank-- > 0;)
    for (Lock* lock = heads[rank]; lock; lock = lock->next()) lock->unlock();
}

}  // namespace

void Lock::enlist(LockRank rank) noexcept {
  std::atomic<Lock*>& head = lists[static_cast<size_t>(rank)];
  next_ = head.load(std::memory_order_relaxed);
  while (!head.compare_exchange_weak(next_, this, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

void Lock::make_anew() noexcept {
  new (&mutex_) std::mutex;
  owner_.store(nullptr, std::memory_order_relaxed);
  again_ = 0;
}

Lock* first_lock(LockRank rank) noexcept { return lists[static_cast<size_t>(rank)].load(std::memory_order_acquire); }

void lock_everything() {
  constexpr auto kTaken = static_cast<size_t>(LockRank::kAnew);
  for (;;) {
    std::array<Lock*, kRanks> heads{};
    for (size_t rank = 0; rank < kTaken; ++rank) {
      heads[rank] = lists[rank].load(std::memory_order_acquire);
      for (Lock* lock = heads[rank]; lock; lock = lock->next()) lock->lock();
    }
    // A thread that creates locks holds a lock of an inner rank. With all locks held, no list grows.
    bool all = true;
    for (size_t rank = 0; rank < kTaken; ++rank)
      all = all && heads[rank] == lists[rank].load(std::memory_order_acquire);
    if (all) {
      taken = heads;
      return;
    }
    unlock_all(heads);
  }
}

void unlock_everything(bool in_child) noexcept {
  if (in_child)
    for (Lock *lock = first_lock(LockRank::kAnew), *next; lock; lock = next) {
      next = lock->next();
      lock->make_anew();
    }
  unlock_all(std::exchange(taken, {}));
}

}  // namespace backplane::core
