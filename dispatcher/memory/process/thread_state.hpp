// What the host keeps per thread, in one block so that a call touches one cache line of it.
//
// Trivially initialised, so that reading it costs one segment-relative load. The members that need a destructor live
// in the block behind `cold`, made at the thread's first need and freed when it ends (epoch.cpp).
#pragma once

#include <atomic>
#include <cstdint>

namespace backplane::core {

struct ThreadCold;  // epoch.hpp: error text, registration for draining
class Level;        // levels/level.hpp
class Captures;     // functions/graph_call.hpp

// The low bits of an epoch; above them it counts the thread's outermost calls.
inline constexpr uint64_t kInside = 1;     // the thread is inside a call that may enter a plugin
inline constexpr uint64_t kSlowEntry = 2;  // it is not in the list of threads yet, or the system has no membarrier
inline constexpr uint64_t kNextEpoch = 4;

struct ThreadState {
  std::atomic<uint64_t> epoch{kSlowEntry};
  bool grad_disabled = false;
  uint32_t locks = 0;  // of the host (lock.hpp) that it holds
  uint64_t included_keys = 0;
  uint64_t excluded_keys = 0;
  Level* level = nullptr;  // top of the stack of active transforms
  uint32_t depth = 0;      // of that stack
  ThreadCold* cold = nullptr;
  uintptr_t stack_end = 0;                      // the lowest address of the thread's stack; 0: not known
  Captures* captures = nullptr;                 // the tape notes into them instead of recording; not owned
  std::atomic<const void*> waits_for{nullptr};  // the Device for whose work it waits

  bool inside() const noexcept { return (epoch.load(std::memory_order_relaxed) & kInside) != 0; }
};

extern thread_local constinit ThreadState thread_state __attribute__((tls_model("initial-exec")));

}  // namespace backplane::core
