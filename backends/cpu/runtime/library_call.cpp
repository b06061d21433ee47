// See library_call.hpp. Calls count themselves; a fork lets no further ones begin and waits for those that have begun.
#include "runtime/library_call.hpp"

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <mutex>

namespace backplane::cpu {
namespace {

std::mutex fork_in_turn;  // held from before a fork to after it
std::atomic<int32_t> calls{0};
std::atomic<int32_t> closed{0};  // 1: a fork waits, or is under way
thread_local int32_t nested = 0;

void leave() {
  if (calls.fetch_sub(1) == 1 && closed.load() != 0) calls.notify_all();
}

void enter() {
  for (;;) {
    calls.fetch_add(1);
    if (closed.load() == 0) return;
    leave();
    closed.wait(1);
  }
}

void open() {
  closed.store(0);
  closed.notify_all();
  fork_in_turn.unlock();
}

void before_fork() {
  fork_in_turn.lock();
  closed.store(1);
  for (int32_t n = calls.load(); n != 0; n = calls.load()) calls.wait(n);
}

// Threads that were about to begin a call, and counted themselves for a moment, are not in the child.
void after_fork_in_child() {
  calls.store(0);
  open();
}

// The host's handler, which takes its locks, was there before: it is called after this one, and calls that end take any
// lock meanwhile.
[[gnu::constructor]] void watch_forks() { pthread_atfork(before_fork, open, after_fork_in_child); }

}  // namespace

LibraryCall::LibraryCall() {
  if (nested++ == 0) enter();
}

LibraryCall::~LibraryCall() {
  if (--nested == 0) leave();
}

}  // namespace backplane::cpu
