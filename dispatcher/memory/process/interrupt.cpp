#include "memory/process/interrupt.hpp"

#include <atomic>

#include "backplane/threads.hpp"
#include "memory/process/epoch.hpp"

namespace backplane::core {
namespace {
std::atomic<InterruptCheck> interrupt_check{nullptr};
}

bool has_interrupt_check() noexcept { return interrupt_check.load(std::memory_order_acquire) != nullptr; }

// Not under a lock: the check may wait for the interpreter lock, whose holder may wait for this one.
void check_interrupt() {
  if (thread_state.locks > 0) return;
  if (const InterruptCheck check = interrupt_check.load(std::memory_order_acquire)) check();
}

bp_status interrupt_status() noexcept {
  try {
    check_interrupt();
    return BP_OK;
  } catch (...) {
    return status_of_exception();
  }
}

}  // namespace backplane::core

namespace backplane {
void set_interrupt_check(InterruptCheck check) noexcept {
  core::interrupt_check.store(check, std::memory_order_release);
}
}  // namespace backplane
