#include "bindings/interpreter/interrupts.hpp"

#include <chrono>

#include "backplane/threads.hpp"
#include "bindings/interpreter/errors.hpp"

namespace backplane::python {
namespace {

unsigned long g_main_thread;

// Handlers run in here, and may raise. Taking the lock at each node of a backward pass would cost more than the nodes.
void check_signals() {
  using Clock = std::chrono::steady_clock;
  constexpr auto kBetween = std::chrono::milliseconds(50);
  static Clock::time_point last;  // of the main thread
  if (PyThread_get_thread_ident() != g_main_thread || interpreter_gone()) return;
  const Clock::time_point now = Clock::now();
  if (now - last < kBetween) return;
  last = now;
  WithGil locked;
  if (PyErr_CheckSignals() != 0) throw keep_python_error();
}

}  // namespace

void watch_interrupts() {
  g_main_thread = PyThread_get_thread_ident();
  set_interrupt_check(check_signals);
}

}  // namespace backplane::python
