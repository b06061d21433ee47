#include "bindings/interpreter/trace_turn.hpp"

#include <unistd.h>

#include <chrono>
#include <thread>

#include "bindings/interpreter/py_ref.hpp"

namespace backplane::python {
namespace {

constexpr auto kLongest = std::chrono::seconds(60);
constexpr auto kBetweenLooks = std::chrono::milliseconds(1);

// Guarded by the interpreter lock. A child of a fork has only the thread that forked, so a turn of its parent is over.
struct Turn {
  PyThreadState* thread = nullptr;
  int depth = 0;
  pid_t process = 0;
} turn;

bool is_taken_by_others() { return turn.depth > 0 && turn.thread != PyThreadState_Get() && turn.process == getpid(); }

}  // namespace

TraceTurn::TraceTurn() {
  const auto end = std::chrono::steady_clock::now() + kLongest;
  while (is_taken_by_others()) {
    if (std::chrono::steady_clock::now() > end || PyErr_CheckSignals() < 0) return;
    const WithoutGil unlocked;
    std::this_thread::sleep_for(kBetweenLooks);
  }
  if (turn.thread != PyThreadState_Get() || turn.process != getpid()) turn.depth = 0;
  turn.thread = PyThreadState_Get();
  turn.process = getpid();
  ++turn.depth;
  is_own_ = true;
}

TraceTurn::~TraceTurn() {
  if (is_own_ && turn.depth > 0) --turn.depth;
}

}  // namespace backplane::python
