// What a thread is trying, for the message of a run that a kernel ends with a signal.
#pragma once

#include <functional>
#include <string>

#include "outcome.hpp"

namespace backplane::conformance {

// Before the first case: a signal that ends the process names the case first. One that has a handler keeps it.
void report_crashes();

// While this lives, `call` is called before each case of the calling thread.
class BeforeEachCase {
 public:
  explicit BeforeEachCase(std::function<void()> call);
  ~BeforeEachCase();
  BeforeEachCase(const BeforeEachCase&) = delete;
};

// The calling thread's case, while this lives.
class Running {
 public:
  explicit Running(const Outcome& outcome);
  ~Running();
  Running(const Running&) = delete;

 private:
  Outcome outcome_;
  std::string text_;
  const Running* before_;
};

}  // namespace backplane::conformance
