// Lets a plugin be unloaded while other threads call: the running calls drain, and a call pays no shared counter.
//
// A thread that is about to read a table row and call through it holds a CallGuard: relaxed stores to its own
// epoch. The unloading side first withdraws the rows, then calls `drain`, which issues a process-wide barrier
// (membarrier) and waits until each thread that was inside has left once.
#pragma once

#include <string>
#include <vector>

#include "backplane/abi/base.h"
#include "memory/process/thread_state.hpp"

namespace backplane::core {

struct Device;
struct ScratchBlock {
  Device* device;
  void* data;
  uint64_t size;
  uint64_t ticket;  // of the kernel's work; 0 on a synchronous device
};

// Leases are counted per thread, without locked instructions, for the first plugins of a process; see
// plugin_record.hpp.
inline constexpr uint32_t kCountedPlugins = 32;
inline constexpr uint32_t kLeaseKinds = 6;
using LeaseCounts = std::atomic<int64_t>[kCountedPlugins][kLeaseKinds];

struct ThreadCold {
  std::string error;  // the message of set_error
  int32_t error_code = 0;
  bool error_is_new = false;          // no caller has seen it yet: it belongs to the failure in flight
  LeaseCounts leases{};               // taken less dropped, by this thread alone
  std::vector<ScratchBlock> scratch;  // of the kernels that are running on this thread
};

// Makes `cold` and enters the thread into the list that `drain` walks. The block is freed when the thread ends.
ThreadCold& cold_slow();
// Keeps the code and the message of the exception in flight for this thread; returns the code.
bp_status status_of_exception() noexcept;
// Enters the outermost call of a thread that is not in the list yet, or on a system without membarrier, which pays a
// fence here. Returns the epoch to leave behind.
uint64_t enter_slow() noexcept;
[[noreturn, gnu::cold]] void fail_stack(const char* op);
// What a kernel and an error's way up may need. The address sanitizer puts space between variables.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr uintptr_t kStackReserve = 192 * 1024;
#else
inline constexpr uintptr_t kStackReserve = 40 * 1024;
#endif
inline ThreadCold& cold() {
  ThreadCold* block = thread_state.cold;
  return block ? *block : cold_slow();
}

// The message of the failure that begins here.
void keep_error(std::string message);
// The message of the failure in flight, which ends here; "" where it came without one, whatever an earlier one said.
std::string take_error();
std::string take_cause();  // the same of a call that failed, whatever it said

// Throws Error(BP_ERROR_MEMORY) where the thread's stack is nearly used up: calls may nest without end, through kernels
// and functions that call ops. On a stack that is not the thread's own (a coroutine's) it does not know.
inline void check_stack(const char* op) {
  if (reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) - thread_state.stack_end < kStackReserve) [[unlikely]]
    fail_stack(op);
}

class CallGuard {
 public:
  CallGuard() noexcept {
    if (!enter(after_)) [[unlikely]]
      after_ = enter_slow();
  }
  // Of a call that has entered: leaves as `after` says, which enter() gave.
  explicit CallGuard(uint64_t after) noexcept : after_(after) {}
  ~CallGuard() {
    if (after_) [[likely]]
      thread_state.epoch.store(after_, std::memory_order_release);
  }
  CallGuard(const CallGuard&) = delete;

  bool outermost() const noexcept { return after_ != 0; }

  // False where entering takes more than a store (enter_slow).
  [[nodiscard]] static bool enter(uint64_t& after) noexcept {
    ThreadState& state = thread_state;
    const uint64_t epoch = state.epoch.load(std::memory_order_relaxed);
    after = 0;
    if (epoch & (kInside | kSlowEntry)) [[unlikely]]
      return (epoch & kInside) != 0;
    state.epoch.store(epoch + kInside, std::memory_order_relaxed);
    // The compiler must not move the row's load above the store; the processor is held by drain's membarrier.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    after = epoch + kNextEpoch;
    return true;
  }

 private:
  uint64_t after_;  // the epoch to leave behind; 0: another guard of this thread is around this one
};

// The sum over all threads, ended ones included.
int64_t counted_leases(uint32_t plugin, uint32_t kind);

// The calls that run when it is made. Data that new calls could not reach at that time is unused once this is
// over.
class Grace {
 public:
  Grace();
  bool over();  // without waiting
  // The same, but for threads that wait for another device than this one.
  bool over(const void* device);

 private:
  struct Running {
    uint64_t serial;
    uint64_t epoch;
  };
  std::vector<Running> running_;
};

// Returns when every call that was running has ended. Throws Error(BP_ERROR_BUSY) from inside a call, where it would
// wait for itself.
void drain();

// Of the calling thread, which will not return from them: as if they had ended.
void abandon_calls() noexcept;

// In a forked child, before its locks are free: forgets the threads that it does not have.
void forget_threads_after_fork();

}  // namespace backplane::core
