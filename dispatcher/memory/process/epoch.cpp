// The list of threads that make calls, and the barrier that lets an unloading thread see all of them.
//
// A thread enters the list at its first call or error (cold_slow) and leaves it when it ends, through a pthread key:
// its destructor runs after those of thread_local objects, which may still make calls. The list and its lock are
// never destroyed, so that threads may end during process exit. Any thread may call anything here.
#include "memory/process/epoch.hpp"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "backplane/error.hpp"
#include "memory/process/lock.hpp"

namespace backplane::core {

thread_local constinit ThreadState thread_state __attribute__((tls_model("initial-exec")));

namespace {

struct Member {
  ThreadState* state;
  ThreadCold* cold;
  uint64_t serial;  // distinguishes a thread from a later one whose block lies at the same address
};

long membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0); }

// In a function of its own, because the thread sanitizer does not model fences and says so (-Wtsan).
#pragma GCC diagnostic push
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wtsan"
#endif
void full_fence() noexcept { std::atomic_thread_fence(std::memory_order_seq_cst); }
#pragma GCC diagnostic pop

void end_thread(void* cold);

struct Threads {
  Lock lock;
  std::vector<Member> members;
  std::vector<ThreadCold*> orphans;  // of threads that a forked child does not have; they may be half-written
  LeaseCounts ended{};               // of threads that have ended
  uint64_t next_serial = 1;
  pthread_key_t key{};
  bool has_membarrier = false;

  Threads() {
    lock.enlist(LockRank::kThreads);
    if (pthread_key_create(&key, end_thread) != 0)
      throw Error(BP_ERROR_MEMORY, "no thread-specific key is left in this process; backplane needs one");
    const long supported = membarrier(MEMBARRIER_CMD_QUERY);
    has_membarrier = supported > 0 && (supported & MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0 &&
                     membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
  }

  // Every thread's earlier stores become visible here, or its later loads see ours.
  void process_barrier() const {
    if (has_membarrier && membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0) return;
    full_fence();
  }
};

Threads& threads() {
  static Threads& list = *new Threads;
  return list;
}

void end_thread(void* cold) {
  Threads& list = threads();
  thread_state.cold = nullptr;
  // Further destructors of this thread may call: that enters it anew.
  thread_state.epoch.store(thread_state.epoch.load(std::memory_order_relaxed) | kSlowEntry, std::memory_order_relaxed);
  {
    std::lock_guard guard(list.lock);
    std::erase_if(list.members, [](const Member& member) { return member.state == &thread_state; });
    for (uint32_t plugin = 0; plugin < kCountedPlugins; ++plugin)
      for (uint32_t kind = 0; kind < kLeaseKinds; ++kind)
        list.ended[plugin][kind] +=
            static_cast<ThreadCold*>(cold)->leases[plugin][kind].load(std::memory_order_relaxed);
  }
  delete static_cast<ThreadCold*>(cold);
}

// 0 where the system does not say.
uintptr_t end_of_stack() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
  void* lowest = nullptr;
  size_t size = 0;
  const int failed = pthread_attr_getstack(&attributes, &lowest, &size);
  pthread_attr_destroy(&attributes);
  return failed ? 0 : reinterpret_cast<uintptr_t>(lowest);
}

}  // namespace

ThreadCold& cold_slow() {
  Threads& list = threads();
  auto* cold = new ThreadCold;
  {
    std::lock_guard guard(list.lock);
    list.members.push_back({&thread_state, cold, list.next_serial++});
  }
  thread_state.cold = cold;
  thread_state.stack_end = end_of_stack();
  if (list.has_membarrier)
    thread_state.epoch.store(thread_state.epoch.load(std::memory_order_relaxed) & ~kSlowEntry,
                             std::memory_order_relaxed);
  pthread_setspecific(list.key, cold);
  return *cold;
}

void keep_error(std::string message) {
  ThreadCold& block = cold();
  block.error = std::move(message);
  block.error_is_new = true;
}

std::string take_cause() {
  const std::string said = take_error();
  return said.empty() ? "failed without a message" : said;
}

std::string take_error() {
  ThreadCold& block = cold();
  return std::exchange(block.error_is_new, false) ? block.error : "";
}

void fail_stack(const char* op) {
  detail::fail(
      BP_ERROR_MEMORY, op, ": less than ", kStackReserve / 1024,
      " KiB of the thread's stack are left; calls nest too deeply (does a kernel call its own op?), or the thread was "
      "made with too small a stack: give it 256 KiB or more");
}

bp_status status_of_exception() noexcept {
  ThreadCold& block = cold();
  block.error_is_new = true;
  try {
    throw;
  } catch (const Error& error) {
    block.error = error.what();
    block.error_code = error.code();
  } catch (const std::bad_alloc&) {
    block.error = "out of memory";
    block.error_code = BP_ERROR_MEMORY;
  } catch (const std::exception& error) {
    block.error = error.what();
    block.error_code = BP_ERROR_INTERNAL;
  } catch (...) {
    block.error = "an exception of unknown type";
    block.error_code = BP_ERROR_INTERNAL;
  }
  return block.error_code;
}

int64_t counted_leases(uint32_t plugin, uint32_t kind) {
  Threads& list = threads();
  std::lock_guard guard(list.lock);
  int64_t count = list.ended[plugin][kind].load(std::memory_order_acquire);
  for (const Member& member : list.members) count += member.cold->leases[plugin][kind].load(std::memory_order_acquire);
  for (const ThreadCold* cold : list.orphans) count += cold->leases[plugin][kind].load(std::memory_order_acquire);
  return count;
}

[[gnu::noinline]] uint64_t enter_slow() noexcept {
  cold();
  const uint64_t epoch = thread_state.epoch.load(std::memory_order_relaxed);
  thread_state.epoch.store(epoch + kInside, std::memory_order_relaxed);
  full_fence();
  return epoch + kNextEpoch;
}

Grace::Grace() {
  Threads& list = threads();
  list.process_barrier();
  std::lock_guard guard(list.lock);
  for (const Member& member : list.members) {
    const uint64_t epoch = member.state->epoch.load(std::memory_order_acquire);
    if (epoch & kInside) running_.push_back({member.serial, epoch});
  }
}

bool Grace::over() { return over(nullptr); }

bool Grace::over(const void* device) {
  if (running_.empty()) return true;
  const Threads& list = threads();
  std::lock_guard guard(threads().lock);
  // Drops those that have left the call in which they were seen, or have ended.
  std::erase_if(running_, [&](const Running& seen) {
    for (const Member& member : list.members)
      if (member.serial == seen.serial) {
        const void* waits_for = member.state->waits_for.load(std::memory_order_acquire);
        return member.state->epoch.load(std::memory_order_acquire) != seen.epoch ||
               (device && waits_for && waits_for != device);
      }
    return true;
  });
  return running_.empty();
}

void drain() {
  BP_CHECK(!thread_state.inside(), BUSY, "this thread is inside a call, which must end first; ",
           "call it again after that call has returned");
  Grace grace;
  // The lock is not held while waiting: a running call may start threads, or wait for one that ends.
  for (auto pause = std::chrono::microseconds(1); !grace.over();
       pause = std::min(pause * 2, std::chrono::microseconds(1000)))
    std::this_thread::sleep_for(pause);
}

void abandon_calls() noexcept {
  const uint64_t epoch = thread_state.epoch.load(std::memory_order_relaxed);
  if (epoch & kInside) thread_state.epoch.store(epoch - kInside + kNextEpoch, std::memory_order_release);
}

void forget_threads_after_fork() {
  Threads& list = threads();
  for (const Member& member : list.members)
    if (member.state != &thread_state) list.orphans.push_back(member.cold);
  std::erase_if(list.members, [](const Member& member) { return member.state != &thread_state; });
}

}  // namespace backplane::core
