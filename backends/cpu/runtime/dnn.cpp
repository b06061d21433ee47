// See dnn.hpp. Calls count themselves; a fork lets no further ones begin and waits for those that have begun.
#ifdef BACKPLANE_ONEDNN

#include "runtime/dnn.hpp"

#include <pthread.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <mutex>

namespace backplane::cpu {
namespace {

std::mutex fork_in_turn;  // held from before a fork to after it
std::atomic<int32_t> calls{0};
std::atomic<int32_t> closed{0};  // 1: a fork waits, or is under way
thread_local int32_t nested = 0;
thread_local sigset_t signals_before;

// All but what a fault of the thread itself raises.
sigset_t signals_of_others() {
  sigset_t set;
  sigfillset(&set);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) sigdelset(&set, fault);
  return set;
}
const sigset_t kOfOthers = signals_of_others();

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

DnnCall::DnnCall() : threads_before_(omp_get_max_threads()) {
  if (nested++ == 0) {
    enter();
    pthread_sigmask(SIG_BLOCK, &kOfOthers, &signals_before);
  }
  if (threads_before_ != 1) omp_set_num_threads(1);
}

DnnCall::~DnnCall() {
  if (threads_before_ != 1) omp_set_num_threads(threads_before_);
  if (--nested == 0) {
    pthread_sigmask(SIG_SETMASK, &signals_before, nullptr);
    leave();
  }
}

}  // namespace backplane::cpu

#endif
