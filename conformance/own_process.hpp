// A run in a process of its own, so that a kernel that ends the process ends no report.
#pragma once

#include <functional>

namespace backplane::conformance {

// What `job` gives, or what ended its process. A process that ends before `job` does (exit, _exit or exec in a kernel,
// STOP in Fortran) is a failure with the case that ran: exit status 1. A signal ends this process as well. SIGTERM and
// SIGINT are passed on. Call it before any other thread starts. In a process that is traced, as by a debugger, `job`
// runs here.
int in_own_process(const std::function<int()>& job);

// Within `job`: it is over, and what follows may end the process.
void job_is_over();
// Within `job`: the case that is tried now, for the report of an early end. Any thread may say it.
void job_tries(const char* text);

}  // namespace backplane::conformance
