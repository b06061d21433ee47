// What a thread is trying, for the message of a run that a kernel ends with a signal.
#pragma once

#include <cstddef>

#include "outcome.hpp"

namespace backplane::conformance {

// Before the first case: a signal that ends the process names the case first. One that has a handler keeps it.
void report_crashes();

// The calling thread's case, while this lives.
class Running {
 public:
  explicit Running(const Outcome& outcome);
  ~Running();
  Running(const Running&) = delete;

 private:
  static constexpr size_t kLength = 240;
  char text_[kLength];
  const char* before_;
};

}  // namespace backplane::conformance
