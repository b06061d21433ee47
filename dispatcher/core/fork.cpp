// The process's fork handlers: take the host's own locks before a fork, so that the child copies them in a known
// state; give them back after it; in the child, count the fork and let the thread list and the pool start anew.
#include "core/fork.hpp"

#include <pthread.h>

#include "core/device.hpp"
#include "core/epoch.hpp"
#include "core/parallel.hpp"
#include "loader/lifecycle.hpp"

namespace backplane::core {

std::atomic<uint32_t> fork_count{0};

namespace {

// From the outermost lock to the innermost: a plugin that registers may use the pool, and both make calls.
void before_fork() {
  loader::lock_lifecycle_for_fork();
  lock_pool_for_fork();
  lock_epochs_for_fork();
}

void after_fork_in_parent() {
  unlock_epochs_after_fork(false);
  unlock_pool_after_fork(false);
  loader::unlock_lifecycle_after_fork(false);
}

void after_fork_in_child() {
  fork_count.fetch_add(1, std::memory_order_relaxed);
  forget_devices_after_fork();
  unlock_epochs_after_fork(true);
  unlock_pool_after_fork(true);
  loader::unlock_lifecycle_after_fork(true);
}

[[gnu::constructor]] void watch_forks() { pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child); }

}  // namespace
}  // namespace backplane::core
