// Lets a plugin be unloaded while other threads call: the running calls drain, and a call pays no shared counter.
//
// A thread that is about to read a table row and call through it holds a CallGuard: relaxed stores to its own
// epoch. The unloading side first withdraws the rows, then calls `drain`, which issues a process-wide barrier
// (membarrier) and waits until each thread that was inside has left once.
#pragma once

#include <string>
#include <vector>

#include "core/thread_state.hpp"

namespace backplane::core {

struct Device;
struct ScratchBlock {
  Device* device;
  void* data;
  uint64_t size;
};

// Leases are counted per thread, without locked instructions, for the first plugins of a process; see
// plugin_record.hpp.
inline constexpr uint32_t kCountedPlugins = 32;
inline constexpr uint32_t kLeaseKinds = 4;
using LeaseCounts = std::atomic<int64_t>[kCountedPlugins][kLeaseKinds];

struct ThreadCold {
  std::string error;  // the message of set_error
  int32_t error_code = 0;
  bool error_is_new = false;          // no caller has been told of it yet: it belongs to the failure in flight
  LeaseCounts leases{};               // taken less dropped, by this thread alone
  std::vector<ScratchBlock> scratch;  // of the kernels of synchronous devices that are running on this thread
};

// Makes `cold` and enters the thread into the list that `drain` walks. The block is freed when the thread ends.
ThreadCold& cold_slow();
// A full fence, for systems without membarrier.
void fence_entry() noexcept;
inline ThreadCold& cold() {
  ThreadCold* block = thread_state.cold;
  return block ? *block : cold_slow();
}

class CallGuard {
 public:
  CallGuard() noexcept {
    ThreadState& state = thread_state;
    if (state.depth++ == 0) {
      if (!state.cold) [[unlikely]]
        cold_slow();
      state.epoch.store(state.epoch.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      // The compiler must not move the row's load above the store; the processor is held by drain's membarrier.
      std::atomic_signal_fence(std::memory_order_seq_cst);
      if (state.fence_on_entry) [[unlikely]]
        fence_entry();
    }
  }
  ~CallGuard() {
    ThreadState& state = thread_state;
    if (--state.depth == 0)
      state.epoch.store(state.epoch.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  CallGuard(const CallGuard&) = delete;
};

// The sum over all threads, ended ones included.
int64_t counted_leases(uint32_t plugin, uint32_t kind);

// Returns when every call that was running has ended. Throws Error(BP_ERROR_BUSY) from inside a call, where it would
// wait for itself.
void drain();

// The thread list's part in fork(), called by fork.cpp alone: no thread is half-entered in the child's copy, and
// the child forgets the threads that it does not have.
void lock_epochs_for_fork();
void unlock_epochs_after_fork(bool in_child);

}  // namespace backplane::core
