// A run in a process of its own, so that a kernel that ends the process, or never returns, ends no report.
#pragma once

#include <functional>

#include "outcome.hpp"

namespace backplane::conformance {

struct HangPolicy {
  double deadline = 0;  // seconds that a case may take for one step; 0: as long as it likes
  // The case had no step within the deadline, and its process has ended. An outcome without an op: that happened
  // between two cases. True: `job` begins again in a new process.
  std::function<bool(const Outcome& hung)> go_on;
  std::function<int()> stop;  // if it gave false; gives the exit status
};

// Calls `job` and returns its result. `again`: a process before this one was ended because its case hung. A process
// that ends before `job` does (exit, _exit or exec in a kernel, STOP in Fortran) is a failure with the case that ran:
// exit status 1. A signal ends this process as well. SIGTERM and SIGINT are passed on. A process whose case hangs gets
// SIGUSR1, and SIGKILL five seconds later. Call it before any other thread starts. In a process that is traced, as by a
// debugger, `job` runs here, and nothing has a deadline.
int in_own_process(const std::function<int(bool again)>& job, const HangPolicy& policy);

}  // namespace backplane::conformance
