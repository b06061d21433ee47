#include "bindings/interpreter/interrupts.hpp"

#include <pthread.h>

#include <chrono>

#include "backplane/threads.hpp"
#include "bindings/interpreter/errors.hpp"

namespace backplane::python {
namespace {

unsigned long g_main_thread;

// threading.main_thread().ident: another thread may import the package. Without `threading` there is no other thread.
bool find_main_thread() {
  g_main_thread = PyThread_get_thread_ident();
  const PyRef name = PyRef::steal(PyUnicode_FromString("threading"));
  const PyRef threading = PyRef::steal(name ? PyImport_GetModule(name.get()) : nullptr);
  if (!threading) return !PyErr_Occurred();
  const PyRef main = PyRef::steal(PyObject_CallMethod(threading.get(), "main_thread", nullptr));
  const PyRef ident = PyRef::steal(main ? PyObject_GetAttrString(main.get(), "ident") : nullptr);
  if (!ident) return false;
  g_main_thread = PyLong_AsUnsignedLong(ident.get());
  return !PyErr_Occurred();
}

// Handlers run in here, and may raise. Taking the lock at each node of a backward pass would cost more than the nodes.
void check_signals() {
  using Clock = std::chrono::steady_clock;
  constexpr auto kBetween = std::chrono::milliseconds(50);
  static Clock::time_point last;  // of the main thread
  if (!on_main_thread() || interpreter_ending()) return;
  const Clock::time_point now = Clock::now();
  if (now - last < kBetween) return;
  last = now;
  WithGil locked;
  if (PyErr_CheckSignals() != 0) throw keep_python_error();
}

}  // namespace

bool watch_interrupts() {
  if (!find_main_thread()) return false;
  pthread_atfork(nullptr, nullptr, [] { g_main_thread = PyThread_get_thread_ident(); });
  set_interrupt_check(check_signals);
  return true;
}

bool on_main_thread() noexcept { return PyThread_get_thread_ident() == g_main_thread; }

}  // namespace backplane::python
