// The process's fork handlers: take every lock of the host before a fork, so that the child copies the guarded data
// whole; give them back after it; in the child, count the fork and let the thread list and the pool start anew.
#include "memory/fork.hpp"

#include <pthread.h>

#include "memory/devices/device.hpp"
#include "memory/process/epoch.hpp"
#include "memory/process/lock.hpp"
#include "memory/process/parallel.hpp"

namespace backplane::core {

std::atomic<uint32_t> fork_count{0};

namespace {

void before_fork() {
  // Create lazy objects now: the child could not finish one that another thread has begun.
  cold();
  core_plugin();
  worker_count();
  lock_everything();
}

void after_fork_in_parent() { unlock_everything(false); }

void after_fork_in_child() {
  fork_count.fetch_add(1, std::memory_order_relaxed);
  forget_devices_after_fork();
  forget_threads_after_fork();
  restart_pool_after_fork();
  unlock_everything(true);
}

[[gnu::constructor]] void watch_forks() { pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child); }

}  // namespace
}  // namespace backplane::core
